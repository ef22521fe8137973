// How many tasks of one key run at a time: what is over waits for its turn.
import type { Rally, RallyOptions, ToolTaskOptions } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { sqlite } from 'mcp-rally/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { gate } from '../../src/testing/manual-scheduler.ts'
import type { Gate } from '../../src/testing/manual-scheduler.ts'
import { Folder } from '../stores/folder.ts'
import { accept, errorOf } from '../wire/messages.ts'
import { Caller } from './caller.ts'
import { Office, opened } from './office.ts'

/** Builds that run until they are let go, at most `limit` of one repository at a time. */
class Builds {
  readonly running: string[] = []
  readonly most = new Map<string, number>()
  broken = false
  readonly #gates = new Map<string, Gate<void>>()
  #changed = gate()

  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  tools = (app: Rally): void => {
    const input = z.object({ repo: z.string(), number: z.coerce.number() })
    const key = ({ args }: { args: z.output<typeof input> }): string | undefined =>
      args.repo === 'free' ? undefined : args.repo
    const task = { mode: 'always', concurrency: { limit: this.#limit, key } } as const
    app.tool('build', { input, task }, async ({ repo, number }, io) => {
      await io.step('build', () => this.#run(`${repo} ${number}`))
      if (this.broken) throw new Error('It is broken.')
      return `${repo} ${number} is built.`
    })
    app.tool('release', { input, task }, async ({ repo, number }, io) => {
      await io.step('before', () => this.#run(`${repo} ${number} before`))
      await io.confirm('sure', 'Sure?')
      await io.step('after', () => this.#run(`${repo} ${number} after`))
      return 'Released.'
    })
  }

  letGo(name: string): void {
    this.#gate(name).open()
  }

  async until(...names: string[]): Promise<void> {
    while (this.running.toSorted().join() !== names.toSorted().join()) await this.#changed.promise
  }

  async #run(name: string): Promise<void> {
    const [repo = ''] = name.split(' ')
    this.running.push(name)
    const ofRepo = this.running.filter((each) => each.startsWith(`${repo} `)).length
    this.most.set(repo, Math.max(this.most.get(repo) ?? 0, ofRepo))
    this.#tell()
    await this.#gate(name).promise
    this.running.splice(this.running.indexOf(name), 1)
    this.#tell()
  }

  #gate(name: string): Gate<void> {
    const found = this.#gates.get(name) ?? gate()
    this.#gates.set(name, found)
    return found
  }

  #tell(): void {
    this.#changed.open()
    this.#changed = gate()
  }
}

describe('a limit on how many run at a time', () => {
  test('holds for each key, on all instances together, and the others start as places are left', async () => {
    const builds = new Builds(2)
    const office = new Office()
    const [one, two] = [office.instance(builds.tools), office.instance(builds.tools)]
    const callers = [new Caller(office, one.app, 'ada'), new Caller(office, two.app, 'bob')]
    const ids: string[] = []
    for (let number = 0; number < 5; number += 1) {
      office.elapse(1)
      ids.push((await callers[number % 2]?.begin('build', { repo: 'web', number })) ?? '')
    }
    await callers[0]?.begin('build', { repo: 'api', number: 9 })
    await builds.until('web 0', 'web 1', 'api 9')
    builds.letGo('web 1')
    await builds.until('web 0', 'web 2', 'api 9')
    for (const number of [0, 2, 3, 4]) builds.letGo(`web ${number}`)
    for (const [i, id] of ids.entries()) expect(await callers[i % 2]?.said(id)).toBe(`web ${i} is built.`)
    expect(builds.most.get('web')).toBe(2)
  })

  test('does not hold without a key', async () => {
    const builds = new Builds(1)
    const { caller } = opened(builds.tools)
    for (const number of [0, 1, 2]) await caller.begin('build', { repo: 'free', number })
    await builds.until('free 0', 'free 1', 'free 2')
    for (const number of [0, 1, 2]) builds.letGo(`free ${number}`)
  })

  test('does not count a task that waits for an answer, which waits for its turn when it has it', async () => {
    const builds = new Builds(1)
    const { caller, office } = opened(builds.tools)
    const first = await caller.begin('release', { repo: 'web', number: 0 })
    builds.letGo('web 0 before')
    await caller.asked(first, 'sure')
    await caller.begin('build', { repo: 'web', number: 1 })
    // Tools count apart.
    await builds.until('web 1')
    builds.letGo('web 1')
    const second = await caller.begin('release', { repo: 'web', number: 2 })
    await builds.until('web 2 before')
    office.elapse(1)
    await caller.update(first, { sure: accept({ confirm: true }) })
    expect((await caller.get(first)).status).toBe('working')
    expect(builds.running).toEqual(['web 2 before'])
    builds.letGo('web 2 before')
    await builds.until('web 0 after')
    await caller.asked(second, 'sure')
    builds.letGo('web 0 after')
    expect(await caller.said(first)).toBe('Released.')
  })

  test('holds for a task that is retried', async () => {
    const builds = new Builds(1)
    const { caller, instance } = opened(builds.tools)
    builds.broken = true
    const failed = await caller.begin('build', { repo: 'web', number: 0 })
    builds.letGo('web 0')
    expect((await caller.ended(failed)).result?.isError).toBe(true)
    builds.broken = false
    await caller.begin('build', { repo: 'web', number: 1 })
    await builds.until('web 1')
    const { id } = await instance.app.tasks.retry(failed)
    const { dueAt } = await instance.app.tasks.get(id)
    expect(dueAt).toBeInstanceOf(Date)
    expect(builds.running).toEqual(['web 1'])
    builds.letGo('web 1')
    expect(await caller.said(id)).toBe('web 0 is built.')
  })

  test('does not keep arguments that do not fit from being refused', async () => {
    const builds = new Builds(1)
    const { caller } = opened(builds.tools)
    await caller.begin('build', { repo: 'web', number: 0 })
    const { result } = await caller.ended(await caller.begin('build', { repo: 7 }))
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('Invalid arguments') }] })
    builds.letGo('web 0')
  })

  test('holds on two instances with one SQLite file, and all tasks end', async () => {
    const folder = new Folder()
    onTestFinished(() => folder.remove())
    let running = 0
    let most = 0
    const tools = (app: Rally): void => {
      app.tool('work', { task: { mode: 'always', concurrency: { limit: 2 } } }, async (_args, io) => {
        await io.step('one', async () => {
          running += 1
          most = Math.max(most, running)
          await new Promise((resolve) => void setTimeout(resolve, 2))
          running -= 1
        })
        return 'Done.'
      })
    }
    const apps = [0, 1].map(() => {
      const store = sqlite(folder.file())
      const app = rally({ name: 'office', version: '1.0.0', store })
      tools(app)
      app.work()
      onTestFinished(async () => {
        app.drain()
        await app.idle()
        await store.close()
      })
      return app
    })
    const polled = { changed: () => new Promise<void>((resolve) => void setTimeout(resolve, 20)) }
    const callers = apps.map((app) => new Caller(polled, app))
    const begun = callers.flatMap((caller) => Array.from({ length: 10 }, () => caller.begin('work')))
    for (const id of await Promise.all(begun)) expect(await callers[0]?.said(id)).toBe('Done.')
    expect(most).toBe(2)
  })
})

describe('a wrong option', () => {
  test.each([
    [{ concurrency: { limit: 0 } }, /`task.concurrency.limit` must be a whole number of at least 1, got 0/],
    [{ concurrency: { limit: 1.5 } }, /`task.concurrency.limit` must be/],
    [{ concurrency: { limit: 1, key: 'caller' } }, /`task.concurrency.key` must be a function/],
    [{ mode: 'sometimes' }, /`task` must be 'always', 'optional' or 'never', or an object with it as `mode`/],
  ])('is refused when the app is built: %j', (wrong: object, message) => {
    const task = wrong as ToolTaskOptions<object>
    const make = (): unknown => rally({ name: 'office', version: '1.0.0' }).tool('build', { task }, () => 'Done.')
    expect(make).toThrow(message)
  })

  test.each<[string, () => unknown, string]>([
    [
      'throws',
      () => {
        throw new Error('No tenant.')
      },
      'No tenant.',
    ],
    [
      'returns a promise',
      () => Promise.reject(new Error('No tenant.')),
      'Tool "build": `task.concurrency.key` must return a string or undefined, got a promise.',
    ],
  ])('a key that %s fails the call and nothing else, and the author reads why', async (_, key, message) => {
    const errors: unknown[] = []
    const onError: RallyOptions['onError'] = (error, { target }) => void errors.push([target, (error as Error).message])
    const { caller } = opened(
      (app) => {
        const concurrency = { limit: 1, key: key as () => string }
        app.tool('build', { task: { mode: 'always', concurrency } }, () => 'Done.')
        app.tool('free', { task: 'always' }, () => 'Free.')
      },
      { onError },
    )
    expect(errorOf(await caller.call('build'))).toMatchObject({ code: -32603 })
    expect(await caller.said(await caller.begin('free'))).toBe('Free.')
    expect(errors).toEqual([['build', message]])
  })

  test('a key that is no string fails the call, and the author reads why', async () => {
    const { caller, instance } = opened((app) => {
      const concurrency = { limit: 1, key: () => 7 as unknown as string }
      app.tool('build', { task: { mode: 'always', concurrency } }, () => 'Done.')
    })
    expect(errorOf(await caller.call('build'))).toMatchObject({ code: -32603 })
    expect(instance.logged.join('\n')).toContain('HANDLER_INVALID')
  })
})
