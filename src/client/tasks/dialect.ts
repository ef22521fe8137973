// How the tasks of a legacy server are read and answered. Our form is that of the extension of 2026-07-28.
import type { CheckedAnswers } from '../answers/answering.ts'

/** Sends one request about a task. Throws a ProtocolError if the server answers with an error. */
export type SendTaskRequest = (
  method: string,
  params: Readonly<Record<string, unknown>>,
) => Promise<Record<string, unknown>>

/** Sends a message that has an id and no method. Nothing waits for a response. */
export type PostTaskMessage = (write: (id: number) => string) => Promise<void>

export interface TaskDialect {
  /** `live`: the server asks while the client waits for the result. `read`: questions are read and answered by requests. */
  readonly questions: 'live' | 'read'
  /** The result of a call, in our form if it says that the call became a task. */
  readonly readCreated: (result: Record<string, unknown>) => Record<string, unknown>
  /** The result of `tasks/get`. */
  readonly get: (id: string, send: SendTaskRequest) => Promise<Record<string, unknown>>
  readonly update: (id: string, answers: CheckedAnswers, send: SendTaskRequest, post: PostTaskMessage) => Promise<void>
}
