// One request of a session, as its method sees it.
import type { Caller } from '../flow/caller.ts'
import type { LoggingLevel, ProgressToken } from '../protocol/messages.ts'
import type { ResolvedRequest } from '../server/resolve.ts'
import type { SentProgress } from '../server/context.ts'
import { invalidParams, isId } from '../server/request.ts'
import type { RoundRequest, Target } from '../server/round.ts'
import type { Call, SuspendCall } from './call.ts'
import type { Outlet } from './host.ts'
import type { Session } from './session.ts'

/** A request, the session it belongs to, and where the messages before its response go. */
export interface SessionRequest {
  readonly request: ResolvedRequest
  readonly session: Session
  readonly outlet: Outlet
  readonly caller: Caller | undefined
  /** Present if the client carries the call from each question to its answer (SEP-1685). */
  readonly suspender?: Suspender | undefined
  /** Present if an answer of such a client resumes the call. */
  readonly resumed?: ResumedCall | undefined
}

export function progressTokenOf({ meta }: ResolvedRequest): ProgressToken | undefined {
  const token = meta?.['progressToken']
  if (token === undefined || isId(token)) return token
  throw invalidParams('progressToken must be a string or an integer')
}

/** Lets a call suspend itself. */
export interface Suspender {
  /** How many questions the call has asked before. */
  readonly segment: number
  suspend(call: {
    readonly request: ResolvedRequest
    readonly level: LoggingLevel
    readonly version: string | undefined
    readonly progress: SentProgress
  }): SuspendCall
}

/** A flow that a live call runs. */
export interface LiveFlow {
  readonly flow: { readonly id: string; readonly round: number }
  /** Returns what `Call.run` returns. */
  run(call: LiveCall): Promise<string | undefined>
}

/** A call that an answer resumes. */
export interface ResumedCall extends LiveFlow {
  /** The log level when the call began. */
  readonly level: LoggingLevel
  /** The highest progress that the client was sent before. */
  readonly progress: number | undefined
}

/** A call that asks while it runs. */
export interface LiveCall {
  readonly running: Call
  readonly target: Target
  readonly round: RoundRequest
  readonly suspend: SuspendCall | undefined
}
