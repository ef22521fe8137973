// The functions that answer a server's questions. They are given once and serve every call.
import type { CreateMessageResult, Root } from '../../protocol/messages.ts'
import type { ClientCall } from '../call.ts'
import type { ServerInfo } from '../discovery.ts'
import type { FormQuestion, RootsQuestion, SampleQuestion, VisitQuestion } from './question.ts'

/** Each function that you pass declares its capability to servers. If it throws, the call fails with that error. */
export interface Answerers {
  /** Shows a form to the user. Default: forms are not supported. */
  onElicit?: (question: FormQuestion, context: AnswerContext) => Answer<FormAnswer>
  /** Asks the user for consent to visit a page, and opens it if they agree. Default: pages are not supported. */
  onVisit?: (question: VisitQuestion, context: AnswerContext) => Answer<VisitAnswer>
  /** Asks a model. `tools` and `context` declare that the prompt may have tools or want the context of servers. Default: not supported. */
  onSample?: SampleAnswerer | { answer: SampleAnswerer; tools?: boolean; context?: boolean }
  /** Lists the folders that servers may know of. Default: roots are not supported. */
  onRoots?: (question: RootsQuestion, context: AnswerContext) => Answer<Root[]>
}

/** Asks the model for the server. */
export type SampleAnswerer = (question: SampleQuestion, context: AnswerContext) => Answer<CreateMessageResult>

export type Answer<T> = T | Promise<T>

/** Fields that are missing in `content` get the default of the form. */
export type FormAnswer =
  | { action: 'accept'; content?: Readonly<Record<string, unknown>> }
  | { action: 'decline' | 'cancel' }

/** What the user did with a page to visit. */
export interface VisitAnswer {
  /** `accept` means that the user agreed to visit the page. */
  action: 'accept' | 'decline' | 'cancel'
}

/** What an answerer gets beside the question. */
export interface AnswerContext {
  /** The server that asks, as it describes itself. */
  readonly server: ServerInfo
  /** The call that the question belongs to. Undefined if a legacy server does not tell. */
  readonly call: ClientCall | undefined
  /** Aborted if the call ends before this answer is there. */
  readonly signal: AbortSignal
}
