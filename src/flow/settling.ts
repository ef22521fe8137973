// The order in which calls settle: one at a time, first the journal's entries in order, then new results in order of arrival.
//
// Between two settlements the microtask queue drains, so that Promise.race and Promise.all see the same order live and on
// replay (rule 7). A pass is quiet when one macrotask turn had no io call (rule 2).
import type { Call } from './call.ts'
import type { PassInput } from './carrier.ts'
import type { Entry, Journal, Tag } from './journal.ts'
import { warnOfSkipped } from './pass-log.ts'
import type { Scheduler } from './scheduler.ts'

export interface Settlement {
  readonly call: Call
  readonly tag: Tag
  readonly payloadText: string
  /** When an answer was received, or when a wait was due, in milliseconds since 1970. */
  readonly at?: number | undefined
  /** What the author's code threw, if it failed. */
  readonly thrown?: unknown
}

/** What the loop needs from its pass. */
export interface Settler {
  readonly input: PassInput
  replay(call: Call, entry: Entry): void
  /** Returns a promise if the settlement must be persisted first. Nothing else settles before it resolves. */
  settle(settlement: Settlement): Promise<void> | undefined
  /** True if an answer is still being validated that was received before this. */
  mustWait(settlement: Settlement): boolean
  /** True if the pass may end as soon as it is quiet. */
  canEnd(): boolean
  /** Called when the pass may end and is quiet. */
  quiet(): void
  /** True if there are new questions to show while the pass still runs. */
  canShow(): boolean
  /** Called when there are new questions to show and the pass is quiet. */
  show(): void
  /** True if the pass must end now, even if the handler is busy. */
  readonly interrupted: boolean
}

type Queued = Settlement | { readonly call: Call; readonly entry: Entry }

function isBefore({ at, tag }: Settlement, other: Queued | undefined): boolean {
  if (at === undefined || other === undefined || 'entry' in other || other.at === undefined) return false
  return at < other.at || (at === other.at && tag === 'a' && other.tag !== 'a')
}

export class Settling {
  readonly #journal: Journal
  readonly #calls: ReadonlyMap<string, Call>
  readonly #settler: Settler
  readonly #scheduler: Scheduler
  readonly #queue: Queued[] = []
  /** The index of the next journal entry to replay. */
  #cursor = 0
  /** Counts io calls and finished work. A turn in which it did not change was quiet. */
  #activity = 0
  #pumpDue = false
  #turnDue = false
  #writing = false
  #stopped = false

  constructor(journal: Journal, calls: ReadonlyMap<string, Call>, settler: Settler, scheduler: Scheduler) {
    this.#journal = journal
    this.#calls = calls
    this.#settler = settler
    this.#scheduler = scheduler
  }

  /** Called when something happened that may allow the next settlement. */
  touch(): void {
    this.#activity += 1
    this.#schedule()
  }

  /** Answers and waits that have not settled yet are ordered by time. At the same time, the answer is first. */
  add(settlement: Settlement): void {
    let index = this.#queue.length
    while (index > 0 && isBefore(settlement, this.#queue[index - 1])) index -= 1
    if (index === this.#queue.length) this.#queue.push(settlement)
    else this.#queue.splice(index, 0, settlement)
    this.touch()
  }

  /** The call came after its entry was skipped. It still settles from the entry, so that no step runs twice. */
  addLate(call: Call, entry: Entry): void {
    this.#queue.push({ call, entry })
    this.touch()
  }

  /** Removes a skipped entry from the journal. It is before the cursor, so the cursor moves back. */
  removeSkipped(entry: Entry): void {
    this.#journal.remove(entry)
    this.#cursor -= 1
  }

  dropScope(prefix: string): void {
    this.#cursor = this.#journal.dropScope(prefix, this.#cursor)
  }

  /** Returns the new results that did not settle; `undefined` if there are none. */
  stop(): Settlement[] | undefined {
    this.#stopped = true
    return this.#queue.length === 0 ? undefined : this.#queue.splice(0).filter((next) => 'tag' in next)
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
    if (!this.#hasNext()) {
      if (this.#settler.canEnd() || this.#settler.canShow()) this.#watch()
      return
    }
    const next = this.#queue.shift()
    if (next === undefined) return
    if ('entry' in next) this.#settleLate(next.call, next.entry)
    else {
      const written = this.#settler.settle(next)
      if (written !== undefined) return this.#scheduleAfter(written)
    }
    this.#schedule()
  }

  /** True if something new may settle now. The end of a validation wakes the loop. */
  #hasNext(): boolean {
    const [next] = this.#queue
    if (next === undefined) return false
    return 'entry' in next || next.at === undefined || !this.#settler.mustWait(next)
  }

  #scheduleAfter(written: Promise<void>): void {
    this.#writing = true
    void written.then(() => {
      this.#writing = false
      this.#schedule()
    })
  }

  /** Moves the entry to where it settles now, so that the next pass settles it in the same place. */
  #settleLate(call: Call, entry: Entry): void {
    // If its scope has settled meanwhile, the entry is gone.
    if (this.#journal.get(entry.key) === entry) {
      this.removeSkipped(entry)
      this.#journal.append(entry.tag, entry.key, entry.at, JSON.stringify(entry.payload))
    }
    this.#settler.replay(call, entry)
  }

  /** Checks after one macrotask turn whether an io call was made. */
  #watch(): void {
    if (this.#turnDue) return
    this.#turnDue = true
    const before = this.#activity
    this.#scheduler.turn(() => {
      this.#turnDue = false
      if (this.#stopped) return
      if (this.#activity !== before || !this.#afterQuietTurn()) this.#schedule()
    })
  }

  /** After a quiet turn: ends the pass, shows questions, or skips an entry that other calls wait behind. False if there is more to settle. */
  #afterQuietTurn(): boolean {
    const entry = this.#journal.at(this.#cursor)
    if (entry === undefined) {
      if (this.#hasNext() || this.#writing) return false
      if (this.#settler.canEnd()) this.#settler.quiet()
      else if (this.#settler.canShow()) this.#settler.show()
      else return false
      return true
    }
    if (this.#calls.has(entry.key)) return false
    if (this.#settler.interrupted && !this.#hasNext()) {
      this.#settler.quiet()
      return true
    }
    // The handler is busy outside io. Its next io call wakes the loop.
    if (!this.#hasWaitingCall()) return true
    entry.skipped = true
    this.#cursor += 1
    const { input } = this.#settler
    // By hand, the handler continues from its own state, and does not repeat what it did in earlier rounds.
    if (input.flowState.byHand === undefined) warnOfSkipped(input, entry.key)
    return false
  }

  #hasWaitingCall(): boolean {
    for (const { settled } of this.#calls.values()) if (!settled) return true
    return false
  }
}
