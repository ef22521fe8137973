// A worker that stands still for longer than its lease, as a machine does that swaps or is migrated, and then goes on.
import { setTimeout } from 'node:timers/promises'
import type { Store } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { Process } from '../drain/process.ts'
import { useDatabase } from '../stores/database.ts'
import { Folder } from '../stores/folder.ts'
import type { WireRequest } from '../wire/messages.ts'
import type { WireTask } from './task-wire.ts'
import { getTask, taskCall, taskIn } from './task-wire.ts'
import type { StoreTarget } from './workers.ts'

const KEYS = ['a secret of the drill of stopped workers']
const LEASE_MS = 1_000

interface Said {
  readonly pid?: number
  readonly stopping?: string
  readonly taken?: boolean
}

const database = useDatabase()
const folder = new Folder()

afterAll(async () => {
  folder.remove()
})

const stores: { name: string; target: () => StoreTarget }[] = [
  { name: 'SQLite', target: () => ({ file: folder.file() }) },
  { name: 'PostgreSQL', target: () => ({ url: database.url, schema: database.nextSchema() }) },
]

function open(target: StoreTarget): Store {
  return 'file' in target ? sqlite(target.file) : postgres(target.url, { schema: target.schema })
}

/** Makes tasks and looks at them, and works on none. */
class Front {
  readonly #app

  constructor(store: Store) {
    this.#app = rally({ name: 'stopped', version: '1.0.0', keys: KEYS, store, tasks: { concurrency: 0 } })
    this.#app.tool('work', { input: z.object({ name: z.string() }), task: 'always' }, () => 'This is for others to do.')
  }

  async begin(name: string): Promise<string> {
    return (await this.#ask(taskCall('work', { name }))).taskId
  }

  async completed(id: string): Promise<WireTask> {
    for (;;) {
      const task = await this.#ask(getTask(id))
      if (task.status !== 'working') return task
      await setTimeout(20)
    }
  }

  async #ask(message: WireRequest): Promise<WireTask> {
    return taskIn((await send(this.#app, message)) ?? {})
  }
}

async function startWorker(store: StoreTarget, stopsAt?: string): Promise<{ worker: Process<Said>; pid: number }> {
  const options = { store, keys: KEYS, leaseMs: LEASE_MS, stopsAt }
  const worker = new Process<Said>(new URL('stopped.mjs', import.meta.url), options)
  onTestFinished(() => worker.kill())
  const { pid = 0 } = await worker.until((said) => said.pid !== undefined)
  return { worker, pid }
}

function textOf({ result }: WireTask): string | undefined {
  return result?.content[0]?.text
}

test.each(stores)(
  'a worker that is stopped past its lease writes nothing over its successor on $name, and works on with other tasks',
  { timeout: 60_000 },
  async ({ target }) => {
    const at = target()
    const store = open(at)
    onTestFinished(() => store.close())
    const front = new Front(store)
    const old = await startWorker(at, 'first')
    const first = await front.begin('first')
    await old.worker.until(({ stopping }) => stopping === 'first')

    const next = await startWorker(at)
    const done = await front.completed(first)
    expect(textOf(done)).toBe(`first was done by ${next.pid}`)
    await next.worker.kill()
    expect(old.worker.heard.filter(({ taken }) => taken !== undefined)).toEqual([])

    old.worker.signal('SIGCONT')
    expect(await old.worker.until(({ taken }) => taken !== undefined)).toEqual({ taken: false })
    const second = await front.completed(await front.begin('second'))
    expect(textOf(second)).toBe(`second was done by ${old.pid}`)
    expect(await front.completed(first)).toEqual(done)
  },
)
