// How the program ends: its exit codes, and the sentences that say why.
import { MISSING_CAPABILITY, ProtocolError } from '../protocol/errors.ts'
import { ClientError } from '../client/errors.ts'
import { cleanMessage } from './clean.ts'

export const EXIT = {
  /** There is a result. */
  done: 0,
  /** There is one, and it says that the tool failed. */
  toolFailed: 1,
  wrongUse: 2,
  /** The server cannot be reached, or does not keep to the protocol, or refuses. */
  serverFailed: 3,
  /** The user said no, or a question has no answer. */
  unanswered: 4,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** What was typed is wrong. */
export class WrongUse extends Error {}

/** A question that nobody here answers. */
export class Unanswered extends Error {}

/** Ctrl-C, or a signal. */
export class Interrupted extends Error {
  constructor() {
    super('Stopped.')
  }
}

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof WrongUse) return EXIT.wrongUse
  if (error instanceof Unanswered) return EXIT.unanswered
  if (error instanceof Interrupted) return EXIT.interrupted
  if (error instanceof ProtocolError && error.rpcCode === MISSING_CAPABILITY) return EXIT.unanswered
  return error instanceof ClientError ? codeOfClient(error) : EXIT.serverFailed
}

/** One or two sentences for the person at the terminal. Much of it may be the server's own words. */
export function whyOf(error: unknown): string {
  const message = cleanMessage(error instanceof Error ? error.message : String(error))
  const advice = adviceFor(error)
  return advice === undefined ? message : `${message}\n${advice}`
}

function codeOfClient({ code }: ClientError): ExitCode {
  switch (code) {
    case 'OPTION_INVALID':
    case 'PENDING_INVALID':
    case 'ANSWER_INVALID':
      return EXIT.wrongUse
    case 'NO_ANSWERER':
    case 'NOT_RESUMABLE':
      return EXIT.unanswered
    default:
      return EXIT.serverFailed
  }
}

function adviceFor(error: unknown): string | undefined {
  if (error instanceof ClientError) {
    if (error.code === 'UNAUTHORIZED') return "Give a token in RALLY_TOKEN, or a header with -H 'Authorization: ...'."
    if (error.code === 'TIMEOUT') return 'Give it longer with --timeout <seconds>.'
  }
  if (!(error instanceof ProtocolError) || error.rpcCode !== MISSING_CAPABILITY) return undefined
  const { requiredCapabilities: needed = {} } = (error.data ?? {}) as { requiredCapabilities?: object }
  if ('sampling' in needed) return 'It asks a model, and there is none here: put what a model said into --answers.'
  return 'roots' in needed ? 'It asks for folders: name them with --root <path>.' : undefined
}
