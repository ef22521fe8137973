// Ends the process when its event loop is blocked while it runs tasks, so that a supervisor starts another.
//
// Nothing in the process itself can stop a handler that never returns. A thread watches the event loop: the loop counts up, and the
// thread ends the process when the count has not changed for `ms`. It counts its own ticks instead of reading a clock: a process that
// was stopped, with its thread, was not blocked.
import type { Worker as Thread } from 'node:worker_threads'
import type { Logger } from '../protocol/logger.ts'

const TICKS = 8
/** The cells that loop and thread share. `never` is never notified: waiting for it is sleeping. */
const CELL = { beats: 0, armed: 1, never: 2, debugged: 3 } as const

const THREAD = `
const { workerData: { cells, tickMs, ticks, message } } = require('node:worker_threads')
let last = -1
let silent = 0
for (;;) {
  Atomics.wait(cells, ${CELL.armed}, 0)
  Atomics.wait(cells, ${CELL.never}, 0, tickMs)
  const beats = Atomics.load(cells, ${CELL.beats})
  const isWatched = Atomics.load(cells, ${CELL.armed}) === 1 && Atomics.load(cells, ${CELL.debugged}) === 0
  silent = isWatched && beats === last ? silent + 1 : 0
  last = beats
  if (silent < ticks) continue
  require('node:fs').writeSync(2, message)
  process.kill(process.pid, 'SIGKILL')
}`

export class Watchdog {
  readonly #ms: number
  readonly #cells = new Int32Array(new SharedArrayBuffer(4 * Object.keys(CELL).length))
  readonly #logger: Logger
  #thread: Promise<Thread | undefined> | undefined
  #timer: NodeJS.Timeout | undefined
  #isArmed = false

  /** 0 never ends the process, and starts no thread. */
  constructor(ms: number, logger: Logger) {
    this.#ms = ms
    this.#logger = logger
  }

  /** Watches the event loop until `rest`. The thread starts with the first call. */
  watch(): void {
    if (this.#ms === 0 || this.#isArmed) return
    this.#isArmed = true
    this.#thread ??= this.#start().catch((error: unknown) => this.#isOff(error))
    this.#timer ??= setInterval(() => this.#tick(), this.#ms / TICKS).unref()
    this.#beat()
    Atomics.store(this.#cells, CELL.armed, 1)
    Atomics.notify(this.#cells, CELL.armed)
  }

  /** The timer may go on for a tick: with one short task after the other, it need not start for each. */
  rest(): void {
    this.#isArmed = false
    Atomics.store(this.#cells, CELL.armed, 0)
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    this.rest()
    this.#stopTimer()
    const thread = await this.#thread
    this.#thread = undefined
    await thread?.terminate()
  }

  #tick(): void {
    if (this.#isArmed) this.#beat()
    else this.#stopTimer()
  }

  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #beat(): void {
    Atomics.add(this.#cells, CELL.beats, 1)
  }

  /** Tasks run without it: a runtime or a permission may forbid threads. */
  #isOff(error: unknown): undefined {
    this.#logger.warn(
      'The watchdog of tasks is off: its thread cannot run. If this process may start no threads, set `tasks.watchdogMs` to false.',
      { error },
    )
  }

  async #start(): Promise<Thread> {
    const [{ Worker }, { url }] = await Promise.all([import('node:worker_threads'), import('node:inspector')])
    // Somebody who debugs stops the event loop on purpose.
    if (url() !== undefined) Atomics.store(this.#cells, CELL.debugged, 1)
    const message =
      `mcp-rally: the event loop was blocked for ${this.#ms} ms while tasks ran. The process ends, so that other instances ` +
      'continue its tasks. See the option `tasks.watchdogMs`.\n'
    const workerData = { cells: this.#cells, tickMs: this.#ms / TICKS, ticks: TICKS, message }
    const thread = new Worker(THREAD, { eval: true, workerData, execArgv: [], env: {} })
    thread.unref()
    thread.on('error', (error) => this.#isOff(error))
    return thread
  }
}
