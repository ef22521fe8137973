// What the server sees of the room in which a store carries flows.
import type { Answers } from '../flow/answering.ts'
import type { Claims } from '../seal/claims.ts'
import type { RequestInfo } from './request.ts'

/** When a call of a tool becomes a task. */
export type TaskMode =
  /** From the start; a client without tasks cannot call it. */
  | 'always'
  /** From the start where the client has tasks. */
  | 'optional'
  /** Not even where its handler asks for it. */
  | 'never'

export interface TasksOptions {
  /** How long a task is kept, from its creation, in milliseconds; `null` is for ever. Default 86 400 000. */
  ttlMs?: number | null
  /** How often clients are to look, in milliseconds. Default 1 000. */
  pollMs?: number
  /** How long a task of an instance that died stays its own, in milliseconds. Default 15 000. */
  leaseMs?: number
  /** Most tasks that this instance works on at a time; 0 leaves all work to others. Default 32. */
  concurrency?: number
  /** Largest journal of a task, in bytes. Default 1 048 576. */
  maxJournalBytes?: number
}

/** A flow that becomes a task, and the request that it does so in. */
export interface Beginning {
  readonly tool: string
  readonly args: Record<string, unknown>
  readonly principal: string | undefined
  readonly info: RequestInfo
  readonly claims: Claims
  /** What came with the call, where nothing has been asked yet. */
  readonly answers: Answers | undefined
}

export interface Tasks {
  /** Keeps the flow as a task and gives the text of the result that names it. */
  begin(beginning: Beginning): Promise<string>
  /** Serves a request for a task; `undefined` where there is no such method. */
  serve(
    method: string,
    params: Record<string, unknown>,
    info: RequestInfo,
    principal: string | undefined,
  ): Promise<string> | undefined
  /** A page of the caller's tasks, the oldest first, as the text of a result. Of what they came to, it says only `isError`. */
  list(principal: string | undefined, cursor: unknown): Promise<string>
  /** Those of the tasks that the caller has. */
  own(ids: readonly string[], principal: string | undefined): Promise<string[]>
  /** Tells how each of these stands, now and whenever one has changed, and that one is gone. Gives how to stop. */
  follow(ids: readonly string[], tell: (taskText: string) => void, gone?: () => void): () => void
  /** Begins to work on tasks, once. */
  start(): void
  /** No further task is taken up, and those worked on are handed over at their next step. */
  drain(): void
  /** Those still worked on are handed over now. */
  interrupt(): void
  /** Resolves once this instance works on none any more. */
  idle(): Promise<void>
}
