// One task that ends every process that runs it, among many that do not, on instances that a supervisor restarts.
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { rally } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'
import type { TaskRecord } from '../../src/store/tasks.ts'
import { isEnd } from '../../src/store/tasks.ts'
import { flowDigest } from '../../src/flow/derive.ts'
import { Process } from '../drain/process.ts'
import { Caller } from '../tasks/caller.ts'
import { Folder } from '../stores/folder.ts'
import type { StoreTarget } from './workers.ts'

export type Poison = 'exit' | 'loop' | 'rejection'

export interface PoisonDrill {
  readonly poison: Poison
  readonly instances: number
  readonly innocents: number
  /** Where the tasks are. Default: a SQLite file. */
  readonly store?: StoreTarget
}

export interface PoisonReport {
  readonly innocents: readonly TaskRecord[]
  readonly poison: TaskRecord
  /** The counts of losses of the poison as they were logged, and those of the task that was given up. */
  readonly losses: readonly number[]
  readonly givenUp: readonly unknown[]
  readonly restarts: number
}

const LEASE_MS = 600
const WATCHDOG_MS = 1_200

export async function runPoisonDrill(drill: PoisonDrill): Promise<PoisonReport> {
  const folder = new Folder()
  const log = folder.file('log')
  writeFileSync(log, '')
  const target = drill.store ?? { file: folder.file() }
  const { ids, read, close } = await createTasks(target, drill.innocents)
  const fleet = new Fleet({ store: target, leaseMs: LEASE_MS, watchdogMs: WATCHDOG_MS, poison: drill.poison, log })
  try {
    fleet.start(drill.instances)
    let records = await read()
    while (!records.every(({ status }) => isEnd(status))) {
      await setTimeout(100)
      records = await read()
    }
    const [poison, ...innocents] = records as [TaskRecord, ...TaskRecord[]]
    const logged = readFileSync(log, 'utf8').trim().split('\n').filter(Boolean)
    const entries = logged.map((line) => JSON.parse(line) as { task?: string; losses?: number; message: string })
    const ofPoison = entries.filter(({ task }) => task === flowDigest(ids[0] ?? ''))
    return {
      innocents,
      poison,
      losses: ofPoison.flatMap(({ losses }) => losses ?? []),
      givenUp: entries.filter(({ message }) => message.startsWith('A task was given up')),
      restarts: fleet.restarts,
    }
  } finally {
    await fleet.stop()
    await close()
    folder.remove()
  }
}

/** The poison is in the middle of the others. */
async function createTasks(
  target: StoreTarget,
  count: number,
): Promise<{ ids: string[]; read: () => Promise<TaskRecord[]>; close: () => Promise<void> }> {
  const store = 'file' in target ? sqlite(target.file) : postgres(target.url, { schema: target.schema })
  const app = rally({ name: 'front', version: '1.0.0', store, tasks: { concurrency: 0 } })
  for (const name of ['innocent', 'poison']) app.tool(name, { task: 'always' }, () => name)
  const caller = new Caller({ changed: () => Promise.resolve() }, app)
  const innocents: string[] = []
  let poison = ''
  for (let i = 0; i < count; i += 1) {
    if (i === Math.min(3, count - 1)) poison = await caller.begin('poison')
    innocents.push(await caller.begin('innocent'))
  }
  const ids = [poison, ...innocents]
  const read = async (): Promise<TaskRecord[]> => {
    const found = await Promise.all(ids.map((id) => store.tasks.read(id)))
    return found.filter((task) => task !== undefined)
  }
  return { ids, read, close: () => store.close() }
}

/** Instances, each of which is started again when it ends. */
class Fleet {
  restarts = 0
  readonly #options: object
  readonly #processes = new Set<Process<object>>()
  #isOver = false

  constructor(options: object) {
    this.#options = options
  }

  start(count: number): void {
    for (let i = 0; i < count; i += 1) this.#spawn()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all([...this.#processes].map((process) => process.kill()))
  }

  #spawn(): void {
    const process = new Process<object>(new URL('poison.mjs', import.meta.url), this.#options)
    this.#processes.add(process)
    void process.ended.then(() => {
      this.#processes.delete(process)
      if (this.#isOver) return
      this.restarts += 1
      this.#spawn()
    })
  }
}
