// rally tasks: the tasks of a store in PostgreSQL, beside the app that works on them.
import { rally as createApp, send } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../stores/database.ts'
import { WITHOUT_PG } from '../stores/without-pg.ts'
import { WITH_TASKS } from '../tasks/caller.ts'
import { call, resultOf } from '../wire/messages.ts'
import { rally } from './cli.ts'
import { Terminal } from './terminal.ts'

const database = useDatabase()

/** An app with a tool that asks, and one that fails until it is mended. */
function opened() {
  const schema = database.nextSchema()
  const store = postgres(database.url, { schema })
  const app = createApp({
    name: 'shop',
    version: '1.0.0',
    keys: ['a secret of the tests of rally tasks'],
    store,
    tasks: { worker: 'web-1' },
    logger: { warn: () => {}, error: () => {} },
  })
  const world = { isMended: false, packed: 0 }
  app.tool('ask', { task: 'always', asks: { go: { type: 'object' } } }, async (_args, io) => {
    await io.ask('go', 'Go on?')
    return 'Done.'
  })
  app.tool('order', { task: 'always' }, async (_args, io) => {
    await io.step('pack', () => (world.packed += 1))
    await io.step('ship', () => {
      if (!world.isMended) throw new Error('The carrier is down.')
    })
    return 'On its way.'
  })
  onTestFinished(async () => {
    app.drain()
    await app.idle()
    await store.close()
  })
  const begin = async (tool: string, status: string): Promise<string> => {
    const { taskId } = resultOf(await send(app, call(tool, {}, {}, WITH_TASKS)))
    const id = String(taskId)
    await until(id, status)
    return id
  }
  /** Waits for what the store says of each change. */
  const until = async (id: string, status: string): Promise<void> => {
    await new Promise<void>((resolve) => {
      const look = async (): Promise<void> => {
        if ((await store.tasks.read(id))?.status === status) resolve()
      }
      const stop = store.tasks.watch(() => void look())
      onTestFinished(stop)
      void look()
    })
  }
  return { store, world, begin, until, options: ['--store', database.url, '--schema', schema] }
}

describe('rally tasks on PostgreSQL', () => {
  test('lists, shows, cancels and retries tasks of an app that runs', async () => {
    const { store, world, begin, until, options } = opened()
    const asking = await begin('ask', 'input_required')
    const failed = await begin('order', 'completed')

    const { stdout } = await rally(['tasks', ...options, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({
      tasks: [
        { id: failed, tool: 'order', outcome: 'error' },
        { id: asking, tool: 'ask', status: 'input_required' },
      ],
    })
    const shown = new Terminal(['tasks', 'show', failed.slice(0, 12), ...options])
    expect(await shown.ended).toBe(0)
    expect(shown.text).toMatch(/^claim web-1 +─+ +ended, /m)
    expect(shown.text).toMatch(/^step {2}pack +█+ +completed, /m)
    expect(shown.text).toMatch(/^step {2}ship +█+ +failed, /m)

    expect(await rally(['tasks', 'cancel', asking, ...options])).toMatchObject({ code: 0 })
    expect(await store.tasks.read(asking)).toMatchObject({ status: 'cancelled' })

    world.isMended = true
    const retry = await rally(['tasks', 'retry', failed, '--from', 'ship', ...options])
    expect(retry).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Retried as [0-9a-f]{64}\n$/) })
    const retried = retry.stdout.slice('Retried as '.length).trim()
    // The command sends no event. The worker finds it when it polls.
    await until(retried, 'completed')
    expect(JSON.parse((await rally(['tasks', 'show', retried, '--json', ...options])).stdout)).toMatchObject({
      outcome: 'ok',
    })
    expect(world.packed).toBe(1)
  })

  test('says that the schema has no tables, and creates none', async () => {
    const schema = database.nextSchema()
    const { code, stderr } = await rally(['tasks', '--store', database.url, '--schema', schema])
    expect(code).not.toBe(0)
    expect(stderr).toBe(
      `rally: the database has no tables of mcp-rally in the schema "${schema}". Is it the right database, and the right schema?\n`,
    )
    const store = postgres(database.url, { schema })
    onTestFinished(() => store.close())
    expect(await store.tasks.list('', 1)).toEqual([])
  })

  test('says what to install if the package pg is missing', async () => {
    const { code, stderr } = await rally(['tasks', '--store', database.url], { NODE_OPTIONS: `--import=${WITHOUT_PG}` })
    expect(code).not.toBe(0)
    expect(stderr).toBe('rally: the package pg is missing. Run `npm install pg`.\n')
  })
})
