// Reads the untrusted params of a request that may take several rounds.
import type { Answers } from '../flow/answering.ts'
import type { Log, Progress } from '../flow/carrier.ts'
import { isObject, isTame } from '../protocol/json.ts'
import { LOGGING_LEVELS } from '../protocol/logger.ts'
import { MOST_ANSWERS } from '../protocol/revisions/2026-07-28.ts'
import type { Retry } from '../protocol/revisions/rounds.ts'
import { quoted } from '../protocol/text.ts'
import type { RequestContext } from './context.ts'
import type { RequestInfo } from './request.ts'
import { DEEPEST, invalidParams } from './request.ts'
import type { Params, ResolvedRequest } from './resolve.ts'
import type { RoundRequest } from './round.ts'

/** `retry` holds what the request brings back from the round before. Default: the params of the request. */
export function readRound(
  request: ResolvedRequest,
  info: RequestInfo,
  context: RequestContext,
  retry: Retry = request.params ?? NOTHING,
): RoundRequest {
  return {
    info,
    args: readArguments(request),
    answers: readAnswers(retry.inputResponses),
    state: retry.requestState,
    caller: context.caller,
    meta: request.meta,
    cancel: context.cancel,
    progress: progressOf(info, context),
    log: logOf(info, context),
    overHttp: context.overHttp ?? false,
  }
}

const NOTHING: Params = {}

function readArguments({ method, params = NOTHING }: ResolvedRequest): Params {
  // The URI alone says what is read.
  if (method === 'resources/read') return {}
  const { arguments: args = {} } = params
  if (!isObject(args) || !isTame(args, DEEPEST)) {
    throw invalidParams(`arguments must be an object, nested at most ${DEEPEST} levels deep, and its numbers finite`)
  }
  if (method === 'prompts/get' && !Object.values(args).every((value) => typeof value === 'string')) {
    throw invalidParams('the arguments of a prompt must be strings')
  }
  return args
}

/** Checks size and shape only. The flow matches the answers to its questions and validates them. */
export function readAnswers(given: unknown): Answers | undefined {
  if (given === undefined || given === null) return undefined
  if (!isObject(given)) throw invalidParams('inputResponses must be an object')
  if (!isTame(given, DEEPEST)) {
    throw invalidParams(`inputResponses must be nested at most ${DEEPEST} levels deep, and its numbers finite`)
  }
  const entries = Object.entries(given)
  if (entries.length > MOST_ANSWERS) throw invalidParams(`inputResponses must contain at most ${MOST_ANSWERS} answers`)
  const answers = Object.create(null) as Record<string, Record<string, unknown>>
  for (const [key, answer] of entries) {
    if (answer === null) continue
    if (!isObject(answer)) throw invalidParams(`inputResponses[${quoted(key)}] must be an object`)
    answers[key] = answer
  }
  return answers
}

function progressOf({ progressToken }: RequestInfo, { notify, progress }: RequestContext): Progress | undefined {
  if (progressToken === undefined || notify === undefined) return undefined
  const sent = progress ?? { highest: undefined }
  return (reached, total, message) => {
    // The protocol wants every number to be higher than the one before. Concurrent steps do not know each other's.
    if (!Number.isFinite(reached) || reached <= (sent.highest ?? -Infinity)) return
    sent.highest = reached
    const known = Number.isFinite(total) ? total : undefined
    notify(notification('notifications/progress', { progressToken, progress: reached, total: known, message }))
  }
}

/** The client names the lowest level that it wants. Without a level it gets no log messages. */
function logOf({ logLevel }: RequestInfo, { notify }: RequestContext): Log | undefined {
  if (logLevel === undefined || notify === undefined) return undefined
  const levels: readonly string[] = LOGGING_LEVELS
  return (level, data, logger) => {
    if (levels.indexOf(level) >= levels.indexOf(logLevel)) {
      notify(notification('notifications/message', { level, logger, data: loggable(data) }))
    }
  }
}

/** A log message must not fail a call: data that JSON cannot represent is sent as text. */
function loggable(data: unknown): unknown {
  try {
    return JSON.stringify(data) === undefined ? null : data
  } catch {
    return String(data)
  }
}

function notification(method: string, params: Record<string, unknown>): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params })
}
