// The order in which calls settle: one at a time, the journal's first, then what is new, first come first served.
//
// Between two settlements the microtask queue drains, so that Promise.race and Promise.all see on replay what they saw live
// (rule 7). A pass is quiet when one macrotask turn brought no io call (rule 2).
import type { Logger } from '../protocol/logger.ts'
import type { Call } from './call.ts'
import type { Entry, Journal, Tag } from './journal.ts'
import type { Scheduler } from './scheduler.ts'

export interface Settlement {
  readonly call: Call
  readonly tag: Tag
  readonly payloadText: string
}

/** What the loop asks of its pass. */
export interface Settler {
  replay(call: Call, entry: Entry): void
  /** Gives a promise where the settlement must be written first; until then nothing else settles. */
  settle(settlement: Settlement): Promise<void> | undefined
  /** Whether the pass has nothing left to do but to end. */
  canEnd(): boolean
  /** The pass could end, and a whole turn went by without an io call. */
  quiet(): void
  /** Whether there are questions to show though the pass cannot end yet. */
  canShow(): boolean
  /** There are, and a whole turn went by without an io call. */
  show(): void
  /** The pass ends now, whatever the handler is doing. */
  readonly interrupted: boolean
}

export class Settling {
  readonly #journal: Journal
  readonly #calls: ReadonlyMap<string, Call>
  readonly #settler: Settler
  readonly #scheduler: Scheduler
  readonly #logger: Logger
  readonly #queue: (Settlement | { call: Call; entry: Entry })[] = []
  /** How far the journal has been replayed. */
  #cursor = 0
  /** Counts io calls and finished work: a turn in which it did not move was a quiet one. */
  #activity = 0
  #pumpDue = false
  #turnDue = false
  #writing = false
  #stopped = false

  constructor(
    journal: Journal,
    calls: ReadonlyMap<string, Call>,
    settler: Settler,
    scheduler: Scheduler,
    logger: Logger,
  ) {
    this.#journal = journal
    this.#calls = calls
    this.#settler = settler
    this.#scheduler = scheduler
    this.#logger = logger
  }

  /** Something happened that may allow the next settlement. */
  touch(): void {
    this.#activity += 1
    this.#schedule()
  }

  add(settlement: Settlement): void {
    this.#queue.push(settlement)
    this.touch()
  }

  /** A call came after the flow had gone on without its entry: it settles from it all the same, so nothing is done twice. */
  addLate(call: Call, entry: Entry): void {
    this.#queue.push({ call, entry })
    this.touch()
  }

  /** Takes a skipped entry out of the journal. It lies before the cursor, which moves with it. */
  removeSkipped(entry: Entry): void {
    this.#journal.remove(entry)
    this.#cursor -= 1
  }

  dropScope(prefix: string): void {
    this.#cursor = this.#journal.dropScope(prefix, this.#cursor)
  }

  stop(): void {
    this.#stopped = true
    this.#queue.length = 0
  }

  #schedule(): void {
    if (this.#pumpDue || this.#writing || this.#stopped) return
    this.#pumpDue = true
    this.#scheduler.drained(() => {
      this.#pumpDue = false
      if (!this.#stopped) this.#settleOne()
    })
  }

  #settleOne(): void {
    const entry = this.#journal.at(this.#cursor)
    if (entry !== undefined) {
      const call = this.#calls.get(entry.key)
      if (call === undefined) return this.#watch()
      this.#cursor += 1
      this.#settler.replay(call, entry)
      return this.#schedule()
    }
    const next = this.#queue.shift()
    if (next === undefined) {
      if (this.#settler.canEnd() || this.#settler.canShow()) this.#watch()
      return
    }
    if ('entry' in next) this.#settleLate(next.call, next.entry)
    else {
      const written = this.#settler.settle(next)
      if (written !== undefined) return this.#scheduleAfter(written)
    }
    this.#schedule()
  }

  #scheduleAfter(written: Promise<void>): void {
    this.#writing = true
    void written.then(() => {
      this.#writing = false
      this.#schedule()
    })
  }

  /** The entry moves to where it settles, so that the next pass sees it settle there. */
  #settleLate(call: Call, entry: Entry): void {
    // Unless its scope has settled meanwhile, and the entry is gone.
    if (this.#journal.get(entry.key) === entry) {
      this.removeSkipped(entry)
      this.#journal.append(entry.tag, entry.key, entry.at, JSON.stringify(entry.payload))
    }
    this.#settler.replay(call, entry)
  }

  /** Looks again after a macrotask turn: did an io call come? */
  #watch(): void {
    if (this.#turnDue) return
    this.#turnDue = true
    const before = this.#activity
    this.#scheduler.turn(() => {
      this.#turnDue = false
      if (this.#stopped) return
      if (this.#activity !== before || !this.#goOnWithout()) this.#schedule()
    })
  }

  /** After a quiet turn: skips a journal entry that nobody asked for while others wait, or lets the pass end. */
  #goOnWithout(): boolean {
    const entry = this.#journal.at(this.#cursor)
    if (entry === undefined) {
      if (this.#queue.length > 0 || this.#writing) return false
      if (this.#settler.canEnd()) this.#settler.quiet()
      else if (this.#settler.canShow()) this.#settler.show()
      else return false
      return true
    }
    if (this.#calls.has(entry.key)) return false
    if (this.#settler.interrupted && this.#queue.length === 0) {
      this.#settler.quiet()
      return true
    }
    // The handler is busy with something of its own; its next io call wakes the loop.
    if (!this.#someoneWaits()) return true
    entry.skipped = true
    this.#cursor += 1
    this.#logger.warn(`The journal's entry "${entry.key}" was not asked for; the flow goes on without it.`)
    return false
  }

  #someoneWaits(): boolean {
    for (const { settled } of this.#calls.values()) if (!settled) return true
    return false
  }
}
