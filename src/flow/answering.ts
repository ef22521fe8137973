// Where the answer to a question comes from, and which questions are left open when a pass ends.
//
// 5. An answer holds only for the question whose pin it has. No question is asked more than three times.
// 6. What the journal holds wins; then what is held; then what the client sent, to questions it was shown.
import { toJsonText } from '../protocol/json.ts'
import type { Asking, Call } from './call.ts'
import type { FlowState, HeldAnswer } from './flow-state.ts'
import { askedTooOften, MissingCapability, questionChanged } from './errors.ts'
import type { Action, AnswerPayload, Entry, Journal } from './journal.ts'
import type { ShownQuestion } from './flow-state.ts'
import type { Capability, Fit } from './question.ts'
import { missingCapabilities } from './question.ts'

/** How often one question may be asked in a flow. */
const MOST_ASKED = 3

const CHANGED = 'This question has changed since it was last answered.'

export type Answers = Readonly<Record<string, Record<string, unknown>>>

/** What a pass gives to its questions, and what it takes from them. */
export interface Asker {
  readonly input: {
    readonly journal: Journal
    readonly flowState: FlowState
    readonly answers: Answers | undefined
    readonly flow: { readonly round: number }
    readonly journalWriter?: unknown
    readonly can: (capability: Capability) => boolean
  }
  find(key: string): Call | undefined
  /** The call settles with this answer, in its turn. */
  answered(call: Call, payloadText: string): void
  /** The journal has the answer, but the flow had gone on without it. */
  answeredLate(call: Call, entry: Entry): void
  /** The answer that the flow had gone on without holds no more. */
  removeSkipped(entry: Entry): void
  /** A validation begins (1) or is over (-1). */
  busy(change: 1 | -1): void
  fail(error: unknown): unknown
}

interface OpenAsk {
  readonly asking: Asking
  readonly asked: number
  /** Why it is asked again. */
  readonly note?: string
  /** The client left it out of this round. That counts as asking again only when the round brought nothing at all. */
  readonly leftOut?: boolean
}

export class Answering {
  readonly #asker: Asker
  readonly #open = new Map<string, OpenAsk>()
  /** Whether other questions are open than when they were last shown. */
  #unshown = false
  /** Answers whose validation is under way. */
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

  /** Settles the call from what is at hand, or leaves its question open. */
  answer(call: Call, asking: Asking): void {
    const { flowState, answers, flow, journalWriter } = this.#asker.input
    if (call.entry !== undefined) return this.#recorded(call, asking, call.entry)
    const held = flowState.held.get(call.key)
    if (held !== undefined) {
      flowState.held.delete(call.key)
      return this.#held(call, asking, held)
    }
    const shown = flowState.open.get(call.key)
    flowState.open.delete(call.key)
    // The first round has no state: answers are offered to whatever it asks.
    const answer = flow.round === 0 || shown !== undefined ? own(answers, call.key) : undefined
    if (answer === undefined) {
      // Where a journalWriter shows the questions, the client may take its time over any of them.
      const leftOut = shown !== undefined && journalWriter === undefined
      this.#leaveOpen(call, { asking, asked: shown?.asked ?? 1, leftOut })
    } else if (shown !== undefined && shown.pin !== asking.pin) {
      this.#leaveOpen(call, { asking, asked: shown.asked + 1, note: CHANGED })
    } else this.#read(call, asking, shown?.asked ?? 0, answer)
  }

  /** What the pass ends with: the wire text of each open question, and what the flow carries on. */
  close(madeProgress: boolean): { questions: Map<string, string>; flowState: FlowState } {
    const { flowState, answers, journal } = this.#asker.input
    // Shown and answered, but not reached by this pass: kept for the pass that does.
    for (const [key, shown] of flowState.open) {
      const raw = own(answers, key)
      if (raw !== undefined && journal.get(key) === undefined) flowState.held.set(key, { ...shown, answer: { raw } })
    }
    // Interrupted before it was read to the end: the next pass reads it again.
    for (const [key, held] of this.#reading) flowState.held.set(key, held)
    const questions = new Map<string, string>()
    const open: FlowState['open'] = new Map()
    for (const [key, { asking, asked, note, leftOut }] of this.#open) {
      const count = leftOut && !madeProgress ? asked + 1 : asked
      if (count > MOST_ASKED) throw askedTooOften(key, MOST_ASKED, 'No answer came.')
      questions.set(key, asking.question.text(note))
      open.set(key, { pin: asking.pin, asked: count })
    }
    return { questions, flowState: { ...flowState, open } }
  }

  /** The questions that are open now. */
  show(): Map<string, ShownQuestion> {
    this.#unshown = false
    const questions = new Map<string, ShownQuestion>()
    for (const [key, { asking, asked, note }] of this.#open) {
      questions.set(key, { pin: asking.pin, asked, text: asking.question.text(note) })
    }
    return questions
  }

  /** An answer that comes while the pass runs, to a question that was shown. */
  offer(key: string, answer: Record<string, unknown>): void {
    const { flowState } = this.#asker.input
    const open = this.#open.get(key)
    const call = this.#asker.find(key)
    if (open !== undefined && call !== undefined) {
      this.#open.delete(key)
      return this.#read(call, open.asking, open.asked, answer)
    }
    const shown = flowState.open.get(key)
    if (shown === undefined) return
    flowState.open.delete(key)
    flowState.held.set(key, { ...shown, answer: { raw: answer } })
  }

  /** A scope is over: nobody waits for the questions inside it any more. */
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

  #recorded(call: Call, asking: Asking, entry: Entry): void {
    const { journal } = this.#asker.input
    const [pin, asked] = entry.payload as AnswerPayload
    if (pin === asking.pin) {
      // Otherwise its turn comes when the journal is replayed to it.
      if (entry.skipped) this.#asker.answeredLate(call, entry)
      return
    }
    const effect = journal.effectAfter(entry)
    if (effect !== undefined) return void this.#asker.fail(questionChanged(call.key, effect))
    if (entry.skipped) this.#asker.removeSkipped(entry)
    else this.#holdFrom(entry)
    this.#leaveOpen(call, { asking, asked: asked + 1, note: CHANGED })
  }

  /** The answers after a question that has changed are held under their own pins; those already waited for settle now. */
  #holdFrom(entry: Entry): void {
    const { journal, flowState } = this.#asker.input
    for (const later of journal.cut(entry).slice(1)) {
      const [pin, asked, action, value] = later.payload as AnswerPayload
      const held: HeldAnswer = { pin, asked, answer: { action, value } }
      const call = this.#asker.find(later.key)
      if (call?.asking !== undefined) this.#held(call, call.asking, held)
      else flowState.held.set(later.key, held)
    }
  }

  #held(call: Call, asking: Asking, { pin, asked, answer }: HeldAnswer): void {
    if (pin !== asking.pin) this.#leaveOpen(call, { asking, asked: asked + 1, note: CHANGED })
    else if ('raw' in answer) this.#read(call, asking, asked, answer.raw)
    else this.#accept(call, asking, asked, answer)
  }

  /** Validates an answer, once. */
  #read(call: Call, asking: Asking, asked: number, answer: Record<string, unknown>): void {
    const read = (fit: Fit): void => {
      if ('misfit' in fit) {
        const note = `The last answer did not fit: ${fit.misfit}`
        this.#leaveOpen(call, { asking, asked: asked + 1, note })
      } else if ('pending' in fit) {
        // Waiting for what the user agreed to is not asking in vain, so it does not count.
        this.#leaveOpen(call, { asking, asked: Math.max(asked, 1), note: fit.pending })
      } else this.#accept(call, asking, Math.max(asked, 1), fit)
    }
    try {
      const fit = asking.question.fit(answer)
      if (!(fit instanceof Promise)) return read(fit)
      this.#asker.busy(1)
      this.#reading.set(call.key, { pin: asking.pin, asked, answer: { raw: answer } })
      const over = (): void => {
        this.#reading.delete(call.key)
        this.#asker.busy(-1)
      }
      fit.then(read, (error: unknown) => void this.#asker.fail(error)).finally(over)
    } catch (error) {
      this.#asker.fail(error)
    }
  }

  #accept(call: Call, asking: Asking, asked: number, { action, value }: { action: Action; value?: unknown }): void {
    try {
      const valueText = value === undefined ? '' : `,${toJsonText(value, `the answer to "${call.key}"`)}`
      this.#asker.answered(call, `["${asking.pin}",${asked},"${action}"${valueText}]`)
    } catch (error) {
      this.#asker.fail(error)
    }
  }

  #leaveOpen(call: Call, ask: OpenAsk): void {
    const missing = missingCapabilities(ask.asking.question.needs, this.#asker.input.can)
    if (missing !== undefined) this.#asker.fail(new MissingCapability(call.key, missing))
    else if (ask.asked > MOST_ASKED) this.#asker.fail(askedTooOften(call.key, MOST_ASKED, ask.note))
    else {
      this.#open.set(call.key, ask)
      this.#unshown = true
    }
  }
}

function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined
}
