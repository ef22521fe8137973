// Who answers a server's questions: functions given once, which serve every call.
import type { CreateMessageResult, Root } from '../../protocol/messages.ts'
import type { ClientCall } from '../call.ts'
import type { ServerInfo } from '../discovery.ts'
import type { FormQuestion, RootsQuestion, SampleQuestion, VisitQuestion } from './question.ts'

/** The answerers that are given decide which capabilities are declared. One that throws ends the call with its error. */
export interface Answerers {
  /** Shows a form to the user. */
  onElicit?: (question: FormQuestion, context: AnswerContext) => Answer<FormAnswer>
  /** Asks the user for consent to visit a page, and opens it for them if they give it. */
  onVisit?: (question: VisitQuestion, context: AnswerContext) => Answer<VisitAnswer>
  /** Asks a model. With `tools` and `context`, also where the prompt has tools or wants the context of servers. */
  onSample?: SampleAnswerer | { answer: SampleAnswerer; tools?: boolean; context?: boolean }
  /** Lists the folders that servers may know of. */
  onRoots?: (question: RootsQuestion, context: AnswerContext) => Answer<Root[]>
}

export type SampleAnswerer = (question: SampleQuestion, context: AnswerContext) => Answer<CreateMessageResult>

export type Answer<T> = T | Promise<T>

/** What is not answered in `content` gets the form's default. */
export type FormAnswer =
  | { action: 'accept'; content?: Readonly<Record<string, unknown>> }
  | { action: 'decline' | 'cancel' }

export interface VisitAnswer {
  /** `accept` is consent to go there. */
  action: 'accept' | 'decline' | 'cancel'
}

export interface AnswerContext {
  /** Who asks, as it says itself. */
  readonly server: ServerInfo
  /** In the course of what. Older servers do not always tell. */
  readonly call: ClientCall | undefined
  /** Aborted when the call ends before this answer is there. */
  readonly signal: AbortSignal
}
