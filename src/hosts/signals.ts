// Stops servers when the process is told to end. SIGTERM comes from an orchestrator, SIGINT from somebody at a terminal.

export type StopSignal = 'SIGTERM' | 'SIGINT'

/** Resolves when the server has stopped. */
export type Stop = (signal: StopSignal) => Promise<void>

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

const stops = new Set<Stop>()

/** The signals that other code listened for too: then that code decides when the process ends. */
const othersDecide = new Set<StopSignal>()

let firstInterruptAt: number | undefined

/** One key press may arrive twice: the terminal sends it to npm and to its child, and npm passes it on. */
const SAME_KEY_PRESS_MS = 500

/** Calls the function on SIGTERM and SIGINT. When all functions are done, the process ends as the signal ends it. */
export function stopOnSignals(stop: Stop): void {
  // Ours run before all other listeners: a `once` listener is not counted any more after it has run.
  if (stops.size === 0) for (const signal of SIGNALS) process.prependListener(signal, listeners[signal])
  stops.add(stop)
}

export function forgetSignals(stop: Stop): void {
  if (!stops.delete(stop) || stops.size > 0) return
  for (const signal of SIGNALS) process.removeListener(signal, listeners[signal])
  firstInterruptAt = undefined
}

const listeners = {
  SIGTERM: (): void => stopAll('SIGTERM'),
  SIGINT: (): void => {
    const now = performance.now()
    firstInterruptAt ??= now
    if (now - firstInterruptAt > SAME_KEY_PRESS_MS && process.listenerCount('SIGINT') === 1) end('SIGINT')
    else stopAll('SIGINT')
  },
}

/** Keeps listening until all have stopped: the signal may come twice, as through npm, and must not end the process early. */
function stopAll(signal: StopSignal): void {
  if (process.listenerCount(signal) > 1) othersDecide.add(signal)
  void Promise.allSettled(Array.from(stops, (stop) => stop(signal))).then(() => {
    if (!othersDecide.has(signal) && process.listenerCount(signal) === 0) end(signal)
  })
}

/** As if nobody had listened. */
function end(signal: StopSignal): void {
  process.removeListener(signal, listeners[signal])
  process.kill(process.pid, signal)
  setTimeout(() => process.exit(STATUS[signal]), IMMUNE_MS)
}

/** The first process of a container ignores its own signal. It exits with the status that stands for the signal. */
const STATUS = { SIGTERM: 128 + 15, SIGINT: 128 + 2 }
const IMMUNE_MS = 100
