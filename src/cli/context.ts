// What a command gets from the process and from the options that all commands have.
import type { Console } from './console.ts'

export interface ServerOptions {
  readonly header?: readonly string[]
  readonly env?: readonly string[]
  readonly timeout?: number
  readonly json?: boolean
  /** A file with servers. The first word is then the name of one. */
  readonly config?: string
  /** The revision of a saved call. It is not negotiated again: a server that starts slowly may look like one of 2025. */
  readonly revision?: string
  /** False if no page may be opened in the browser. */
  readonly open?: boolean
}

/** What a command gets from the process. */
export interface RunContext {
  readonly console: Console
  readonly env: NodeJS.ProcessEnv
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
  readonly version: string
}
