// A task as plain JSON: another process can take it up another day.

/** All that `client.task` needs. It holds no secret, but whoever has the id may be able to see and answer the task. */
export interface SavedTask {
  /** Of this format. */
  readonly version: 1
  /** Of the protocol. */
  readonly revision: string
  readonly taskId: string
  /** The tool that was called, where it is known. */
  readonly tool?: string
  /** How often the server wants to be asked, as it said last. */
  readonly pollIntervalMs?: number
}
