// Time limits without a timer for each pass: one sweep looks after all passes under way. A timer of its own costs a short
// call more than all the rest of its pass.

const SWEEP_MS = 100

const deadlines = new Map<Expiring, number>()
let sweep: NodeJS.Timeout | undefined

export interface Expiring {
  expire(): void
}

export function watchDeadline(pass: Expiring, ms: number): void {
  deadlines.set(pass, performance.now() + ms)
  // Does not keep the process alive: what a pass waits for does that.
  sweep ??= setInterval(expireDue, SWEEP_MS).unref()
}

/** Must be called when the pass ends: nothing else lets go of it. */
export function forgetDeadline(pass: Expiring): void {
  deadlines.delete(pass)
}

function expireDue(): void {
  const now = performance.now()
  for (const [pass, deadline] of deadlines) if (deadline <= now) pass.expire()
  if (deadlines.size > 0) return
  clearInterval(sweep)
  sweep = undefined
}
