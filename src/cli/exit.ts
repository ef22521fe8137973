// The exit codes of the program, and the messages that explain them.
import { INVALID_PARAMS, MISSING_CAPABILITY, ProtocolError } from '../protocol/errors.ts'
import { ClientError } from '../client/errors.ts'
import { cleanMessage } from './clean.ts'

export const EXIT = {
  /** The call has a result. */
  done: 0,
  /** The call has a result, which says that the tool failed. */
  toolFailed: 1,
  /** What was typed is wrong. */
  usage: 2,
  /** The server cannot be reached, violates the protocol, or refuses. */
  serverFailed: 3,
  /** The user declined, or a question has no answer. */
  unanswered: 4,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** What was typed is wrong. */
export class UsageError extends Error {}

/** A question has no answer. */
export class Unanswered extends Error {}

/** Ctrl-C, or a signal. */
export class Interrupted extends Error {
  constructor() {
    super('Stopped.')
  }
}

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof Unanswered) return EXIT.unanswered
  if (error instanceof Interrupted) return EXIT.interrupted
  if (error instanceof ProtocolError && error.rpcCode === MISSING_CAPABILITY) return EXIT.unanswered
  return error instanceof ClientError ? codeOfClient(error) : EXIT.serverFailed
}

/** One or two sentences for the person at the terminal. They may contain text of the server. */
export function whyOf(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error)
  const message = cleanMessage(error instanceof ClientError ? forPerson(said) : said)
  const advice = adviceFor(error)
  return advice === undefined ? message : `${message}\n${advice}`
}

/** The messages of the client also say what a program can do. Leaves that out. */
function forPerson(message: string): string {
  const sentences = message.replace(/^connect\(\): /, '').split(/(?<=[.!?]) (?=[A-Z])/)
  const kept = sentences.filter((sentence) => !FOR_PROGRAMS.test(sentence))
  return (kept.length > 0 ? kept : sentences).join(' ').replaceAll(/ \((timeoutMs|taskMs)\)/g, '')
}

const FOR_PROGRAMS = /\bconnect\(\)|\bclient\.\w+\(|\berror\.(task|pending)\b|\boption headers\b/

function codeOfClient({ code }: ClientError): ExitCode {
  switch (code) {
    case 'OPTION_INVALID':
    case 'PENDING_INVALID':
    case 'ANSWER_INVALID':
      return EXIT.usage
    case 'NO_ANSWERER':
    case 'NOT_RESUMABLE':
      return EXIT.unanswered
    default:
      return EXIT.serverFailed
  }
}

function adviceFor(error: unknown): string | undefined {
  if (error instanceof ClientError) {
    // With 403 the server knows the caller, and its own words say what is missing.
    if (error.code === 'UNAUTHORIZED' && error.status !== 403) {
      return "Log in with npx mcp-rally login <server>, set a token in RALLY_TOKEN, or pass a header: -H 'Authorization: ...'."
    }
    if (error.code === 'TIMEOUT') return 'Allow more time with --timeout <seconds>.'
  }
  if (!(error instanceof ProtocolError)) return undefined
  if (error.rpcCode === INVALID_PARAMS && error.message.includes('requestState'))
    return 'The answer came too late, or the server has other keys than before. Make the call again.'
  if (error.rpcCode !== MISSING_CAPABILITY) return undefined
  const { requiredCapabilities: needed = {} } = (error.data ?? {}) as { requiredCapabilities?: object }
  if ('sampling' in needed)
    return 'The server asks a model, and rally has none. Put the answer of a model into the file for --answers.'
  return 'roots' in needed ? 'The server asks for folders. Name them with --root <path>.' : undefined
}
