// 50,000 followed tasks: how long the event loop is blocked while they are read, polled, and all changed by another process.
import { setTimeout } from 'node:timers/promises'
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { StoreOutages } from '../../src/store/outages.ts'
import { Followers } from '../../src/tasks/followers.ts'
import { Process } from '../drain/process.ts'
import { startDatabase, type TestDatabase } from '../stores/database.ts'
import { Folder } from '../stores/folder.ts'

const COUNT = 50_000
const MOST_BLOCKED_MS = 100
const TICK_MS = 2

describe(`${COUNT} followed tasks`, () => {
  let database: TestDatabase
  const rows: object[] = []
  beforeAll(async () => {
    database = await startDatabase()
  }, 60_000)
  afterAll(() => console.table(rows))
  afterAll(() => database?.stop())

  test.each(['SQLite', 'PostgreSQL'])('on %s', { timeout: 300_000 }, async (kind) => {
    const folder = new Folder()
    const target =
      kind === 'SQLite' ? { file: folder.file() } : { url: database.url, schema: `followers_${process.pid}` }
    const writer = new Process<{ done: string }>(new URL('followers.mjs', import.meta.url), {
      store: target,
      count: COUNT,
    })
    await writer.until(({ done }) => done === 'created')
    const store = 'file' in target ? sqlite(target.file) : postgres(target.url, { schema: target.schema })
    const logger = { warn: () => {}, error: (message: string) => console.error(message) }
    const followers = new Followers(new StoreOutages(logger).tasks(store.tasks), logger)
    let told = 0
    const ids = Array.from({ length: COUNT }, (_, i) => String(i).padStart(64, '0'))
    const loop = new LoopWatch()

    // One caller for each 100 tasks, as clients do it.
    const stops: (() => void)[] = []
    for (let from = 0; from < COUNT; from += 100) {
      stops.push(followers.follow(ids.slice(from, from + 100), () => (told += 1)))
      if (from % 1_000 === 0) await setTimeout(0)
    }
    await until(() => told >= COUNT)
    const read = loop.take()

    await setTimeout(12_000)
    const polled = loop.take()

    const changed = writer.until(({ done }) => done === 'changed')
    writer.tell({})
    await until(() => told >= 2 * COUNT)
    const all = loop.take()
    await changed

    loop.stop()
    for (const stop of stops) stop()
    await writer.kill()
    await store.close()
    folder.remove()
    const stages = { 'first read': read, polled, 'all changed': all }
    for (const [stage, blocked] of Object.entries(stages)) rows.push({ store: kind, tasks: COUNT, stage, ...blocked })
    expect(Math.max(...Object.values(stages).map(({ cpuMs: most }) => most))).toBeLessThanOrEqual(MOST_BLOCKED_MS)
  })
})

async function until(isReached: () => boolean): Promise<void> {
  while (!isReached()) await setTimeout(10)
}

/** How long the event loop was blocked, at the most. */
interface Blocked {
  /** By the clock: on a busy machine, the process also waits for a core. */
  readonly ms: number
  /** By the CPU time of the process, which is what the code needs. */
  readonly cpuMs: number
}

class LoopWatch {
  #at = performance.now()
  #cpu = cpuMs()
  #ms = 0
  #cpuMs = 0
  readonly #timer = setInterval(() => this.#tick(), TICK_MS)

  take(): Blocked {
    this.#tick()
    const blocked = { ms: Math.round(this.#ms), cpuMs: Math.round(this.#cpuMs) }
    this.#ms = 0
    this.#cpuMs = 0
    return blocked
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    const [at, cpu] = [performance.now(), cpuMs()]
    this.#ms = Math.max(this.#ms, at - this.#at - TICK_MS)
    this.#cpuMs = Math.max(this.#cpuMs, cpu - this.#cpu)
    this.#at = at
    this.#cpu = cpu
  }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
