// Where the answer to a question comes from, and which questions stay open when a pass ends.
//
// 5. An answer is valid only for the question that has its pin. No question is asked more than three times.
// 6. The journal's answer wins, then a held one, then what the client sent to a question that it was shown.
import { toJsonText } from '../protocol/json.ts'
import type { Asking, Call } from './call.ts'
import type { EventSource, ReceivedEvent } from './event-source.ts'
import type { FlowState, HeldAnswer } from './flow-state.ts'
import { askedTooOften, MissingCapability, questionChanged } from './errors.ts'
import type { Action, AnswerPayload, Entry, Journal, Tag } from './journal.ts'
import type { ShownQuestion } from './flow-state.ts'
import type { Capability, Fit } from './question.ts'
import { missingCapabilities } from './question.ts'

/** How many times a question may be asked in one flow. */
const MOST_ASKED = 3

/** What the note begins with that tells the user why an answer was not taken. */
export const MISFIT_NOTE = 'The last answer did not fit: '

const CHANGED = 'This question has changed since it was last answered.'

export type Answers = Readonly<Record<string, Record<string, unknown>>>

/** What answering needs from its pass. */
export interface Asker {
  readonly input: {
    readonly journal: Journal
    readonly flowState: FlowState
    readonly answers: Answers | undefined
    readonly flow: { readonly round: number }
    readonly journalWriter?: unknown
    readonly events?: EventSource | undefined
    readonly can: (capability: Capability) => boolean
  }
  find(key: string): Call | undefined
  /** Settles the call with this answer, in its turn. `at` is when it was received. */
  answered(call: Call, payloadText: string, at: number | undefined): void
  /** When the answer to this question was received. */
  receivedAt(key: string): number
  /** Settles the call at once if the deadline of its question has passed, and returns true. Otherwise sees to it that it will. */
  expires(call: Call, asking: Asking): boolean
  /** The call had settled because it was due, and its entry was removed. It settles again. */
  dueAgain(entry: Entry): void
  /** Settles the call from an entry that the pass had skipped. */
  answeredLate(call: Call, entry: Entry): void
  /** Removes an entry that the pass had skipped: its answer is not valid any more. */
  removeSkipped(entry: Entry): void
  /** The question is not the one that the client was shown under this pin. */
  questionChanged(key: string, pin: string, asking: Asking): void
  /** The value of an event does not fit the schema of the handler. */
  eventRefused(key: string, why: string): void
  /** Remembers a question that the client is shown. */
  shown(asking: Asking): void
  /** A validation starts (1) or ends (-1). */
  busy(change: 1 | -1): void
  /** Ends the pass. `key` is the key of the question that failed. */
  fail(error: unknown, key?: string): unknown
}

interface OpenAsk {
  readonly asking: Asking
  readonly asked: number
  /** Tells the user why it is asked again. */
  readonly note?: string
  /** The client did not answer it in this round. That counts as asking again only if the round had no answer at all. */
  readonly leftOut?: boolean
}

/** How often the question had been asked when the answer was received, and when that was. */
interface GivenAnswer {
  readonly asked: number
  readonly at?: number | undefined
}

export class Answering {
  readonly #asker: Asker
  readonly #open = new Map<string, OpenAsk>()
  /** True if the open questions have changed since they were last shown. */
  #unshown = false
  /** Answers that are being validated. */
  readonly #reading = new Map<string, HeldAnswer>()

  constructor(asker: Asker) {
    this.#asker = asker
  }

  get anyOpen(): boolean {
    return this.#open.size > 0
  }

  get anyUnshown(): boolean {
    return this.#unshown
  }

  /** Settles the call from an answer that is there already, or leaves its question open. */
  answer(call: Call, asking: Asking): void {
    const { flowState, answers, flow, journalWriter } = this.#asker.input
    if (call.entry !== undefined) return this.#recorded(call, asking, call.entry)
    const held = flowState.held.get(call.key)
    if (held !== undefined) {
      flowState.held.delete(call.key)
      return this.#held(call, asking, held)
    }
    if (asking.question.isEvent) return this.#event(call, asking)
    const shown = flowState.open.get(call.key)
    flowState.open.delete(call.key)
    if (shown !== undefined && shown.pin !== asking.pin) this.#asker.questionChanged(call.key, shown.pin, asking)
    // In the first round no question was shown yet: answers that came with the call are for any question.
    const answer = flow.round === 0 || shown !== undefined ? own(answers, call.key) : undefined
    if (answer === undefined) {
      // In a task the client may answer each question in its own time.
      const leftOut = shown !== undefined && journalWriter === undefined
      this.#leaveOpen(call, { asking, asked: shown?.asked ?? 1, leftOut })
    } else if (shown !== undefined && shown.pin !== asking.pin) {
      this.#leaveOpen(call, { asking, asked: shown.asked + 1, note: CHANGED })
    } else this.#read(call, asking, { asked: shown?.asked ?? 0, at: this.#asker.receivedAt(call.key) }, answer)
  }

  /** Returns what the pass ends with: the wire text of each open question, and the flow state for the next pass. */
  close(madeProgress: boolean): { questions: Map<string, string>; events: string[]; flowState: FlowState } {
    const { flowState, answers, journal } = this.#asker.input
    // Answered, but this pass did not reach the question: keep the answer for a later pass.
    for (const [key, shown] of flowState.open) {
      const raw = own(answers, key)
      if (raw !== undefined && journal.get(key) === undefined)
        flowState.held.set(key, { ...shown, answer: { raw }, at: this.#asker.receivedAt(key) })
    }
    // Interrupted while it was validated: the next pass validates it again.
    for (const [key, held] of this.#reading) flowState.held.set(key, held)
    const questions = new Map<string, string>()
    const events: string[] = []
    const open: FlowState['open'] = new Map()
    for (const [key, { asking, asked, note, leftOut }] of this.#open) {
      if (asking.question.isEvent) {
        events.push(key)
        continue
      }
      // A deadline says how long the question stays open.
      const count = leftOut && !madeProgress && asking.deadline === undefined ? asked + 1 : asked
      if (count > MOST_ASKED) throw askedTooOften(key, MOST_ASKED, 'No answer came.')
      questions.set(key, asking.question.text(note))
      open.set(key, { pin: asking.pin, asked: count })
      this.#asker.shown(asking)
    }
    return { questions, events, flowState: { ...flowState, open } }
  }

  /** The questions that are open now. They count as shown. */
  show(): Map<string, ShownQuestion> {
    this.#unshown = false
    const questions = new Map<string, ShownQuestion>()
    for (const [key, { asking, asked, note }] of this.#open) {
      if (asking.question.isEvent) continue
      questions.set(key, { pin: asking.pin, asked, text: asking.question.text(note) })
      this.#asker.shown(asking)
    }
    return questions
  }

  /** Takes an answer that arrived while the pass runs, to a question that was shown. */
  offer(key: string, answer: Record<string, unknown>): void {
    const { flowState } = this.#asker.input
    const open = this.#open.get(key)
    const call = this.#asker.find(key)
    if (open !== undefined && call !== undefined) {
      this.#open.delete(key)
      return this.#read(call, open.asking, { asked: open.asked, at: this.#asker.receivedAt(key) }, answer)
    }
    const shown = flowState.open.get(key)
    if (shown === undefined) return
    flowState.open.delete(key)
    flowState.held.set(key, { ...shown, answer: { raw: answer }, at: this.#asker.receivedAt(key) })
  }

  /** Takes an event that arrived while the pass runs. */
  offerEvent(key: string, { value, at }: ReceivedEvent): void {
    const open = this.#open.get(key)
    const call = this.#asker.find(key)
    if (open === undefined || call === undefined) return
    this.#open.delete(key)
    this.#read(call, open.asking, { asked: 1, at }, { value })
  }

  /** The deadline of the question has passed. Returns false if it is not open: its answer came in time and is being validated. */
  expire(key: string): boolean {
    const wasOpen = this.#open.delete(key)
    if (wasOpen) this.#unshown = true
    return wasOpen
  }

  /** True if an answer is being validated that settles before this: by the time of receipt, and before a wait at the same time. */
  isReadingBefore({ tag, at = 0 }: { readonly tag: Tag; readonly at?: number | undefined }): boolean {
    for (const { at: received = 0 } of this.#reading.values())
      if (received < at || (received === at && tag !== 'a')) return true
    return false
  }

  /** Drops the questions inside a scope that has settled. */
  dropScope(prefix: string): void {
    const { flowState } = this.#asker.input
    for (const kept of [this.#open, this.#reading, flowState.open, flowState.held]) {
      for (const key of kept.keys()) {
        if (!key.startsWith(prefix)) continue
        if (kept === this.#open) this.#unshown = true
        kept.delete(key)
      }
    }
  }

  /** Only a signal settles an event. An answer of the client under the same key is not read. */
  #event(call: Call, asking: Asking): void {
    const event = this.#asker.input.events?.take(call.key)
    if (event === undefined) this.#leaveOpen(call, { asking, asked: 1 })
    else this.#read(call, asking, { asked: 1, at: event.at }, { value: event.value })
  }

  #recorded(call: Call, asking: Asking, entry: Entry): void {
    const { journal } = this.#asker.input
    if (entry.tag === 'ax') {
      if (entry.skipped) this.#asker.answeredLate(call, entry)
      return
    }
    const [pin, asked] = entry.payload as AnswerPayload
    if (pin === asking.pin) {
      // Otherwise the replay of the journal settles it.
      if (entry.skipped) this.#asker.answeredLate(call, entry)
      return
    }
    this.#asker.questionChanged(call.key, pin, asking)
    const effect = journal.effectAfter(entry)
    if (effect !== undefined) return void this.#asker.fail(questionChanged(call.key, effect))
    if (entry.skipped) this.#asker.removeSkipped(entry)
    else this.#holdFrom(entry)
    this.#leaveOpen(call, { asking, asked: asked + 1, note: CHANGED })
  }

  /** Removes the answers from this one on from the journal, and holds them under their own pins. Calls that wait for one settle now. */
  #holdFrom(entry: Entry): void {
    const { journal, flowState } = this.#asker.input
    for (const later of journal.cut(entry).slice(1)) {
      if (later.tag !== 'a') {
        this.#asker.dueAgain(later)
        continue
      }
      const [pin, asked, action, value] = later.payload as AnswerPayload
      const held: HeldAnswer = { pin, asked, answer: { action, value } }
      const call = this.#asker.find(later.key)
      if (call?.asking !== undefined) this.#held(call, call.asking, held)
      else flowState.held.set(later.key, held)
    }
  }

  #held(call: Call, asking: Asking, { pin, asked, answer, at }: HeldAnswer): void {
    if (pin !== asking.pin) {
      this.#asker.questionChanged(call.key, pin, asking)
      this.#leaveOpen(call, { asking, asked: asked + 1, note: CHANGED })
    } else if ('raw' in answer) this.#read(call, asking, { asked, at }, answer.raw)
    else this.#accept(call, asking, { asked, at }, answer)
  }

  /** Validates an answer, once. One that came after the deadline is ignored. */
  #read(call: Call, asking: Asking, given: GivenAnswer, answer: Record<string, unknown>): void {
    const { asked, at } = given
    if (asking.deadline !== undefined && at !== undefined && at > asking.deadline.dueAt)
      return this.#leaveOpen(call, { asking, asked: Math.max(asked, 1) })
    const read = (fit: Fit): void => {
      if ('misfit' in fit && asking.question.isEvent) {
        this.#asker.eventRefused(call.key, fit.misfit)
        this.#leaveOpen(call, { asking, asked })
      } else if ('misfit' in fit) {
        const note = MISFIT_NOTE + fit.misfit
        this.#leaveOpen(call, { asking, asked: asked + 1, note })
      } else if ('pending' in fit) {
        // The user accepted and needs more time, so this does not count as asking again.
        this.#leaveOpen(call, { asking, asked: Math.max(asked, 1), note: fit.pending })
      } else this.#accept(call, asking, { asked: Math.max(asked, 1), at }, fit)
    }
    try {
      const fit = asking.question.fit(answer)
      if (!(fit instanceof Promise)) return read(fit)
      this.#asker.busy(1)
      this.#reading.set(call.key, { pin: asking.pin, asked, answer: { raw: answer }, at })
      const over = (): void => {
        this.#reading.delete(call.key)
        this.#asker.busy(-1)
      }
      fit.then(read, (error: unknown) => void this.#asker.fail(error, call.key)).finally(over)
    } catch (error) {
      this.#asker.fail(error, call.key)
    }
  }

  #accept(
    call: Call,
    asking: Asking,
    { asked, at }: GivenAnswer,
    { action, value }: { action: Action; value?: unknown },
  ): void {
    try {
      const valueText = value === undefined ? '' : `,${toJsonText(value, `the answer to "${call.key}"`)}`
      this.#asker.answered(call, `["${asking.pin}",${asked},"${action}"${valueText}]`, at)
    } catch (error) {
      this.#asker.fail(error, call.key)
    }
  }

  #leaveOpen(call: Call, ask: OpenAsk): void {
    if (ask.asking.deadline !== undefined && this.#asker.expires(call, ask.asking)) return
    const missing = missingCapabilities(ask.asking.question.needs, this.#asker.input.can)
    if (missing !== undefined) this.#asker.fail(new MissingCapability(call.key, missing))
    else if (ask.asked > MOST_ASKED) this.#asker.fail(askedTooOften(call.key, MOST_ASKED, ask.note), call.key)
    else {
      this.#open.set(call.key, ask)
      this.#unshown = true
    }
  }
}

/** Holds answers to open questions for a later pass, under the pins of these questions. Other answers are dropped. */
export function holdAnswers(flowState: FlowState, answers: Answers | undefined, at: number): FlowState {
  const open = new Map(flowState.open)
  const held = new Map(flowState.held)
  for (const [key, shown] of flowState.open) {
    const raw = own(answers, key)
    if (raw === undefined) continue
    open.delete(key)
    held.set(key, { ...shown, answer: { raw }, at })
  }
  return { ...flowState, open, held }
}

function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined
}
