// From a parsed message to a response, whatever host it came through.
import type { Answers } from '../flow/answering.ts'
import type { Cancel } from '../flow/cancel.ts'
import type { Io } from '../flow/io.ts'
import type { Log, Progress } from '../flow/pass.ts'
import { INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError, RallyError } from '../protocol/errors.ts'
import { withinDepth } from '../protocol/json.ts'
import { LOGGING_LEVELS } from '../protocol/messages.ts'
import type { Checked } from '../protocol/standard.ts'
import { errorText, messageOf, resultText, structuredText } from './content.ts'
import type { Reply } from './reply.ts'
import { errorReply, internalError, resultReply } from './reply.ts'
import type { Envelope, RequestInfo } from './request.ts'
import { idOf, isObject, readEnvelope, readMeta, unsupportedVersion } from './request.ts'
import type { Carried, RoundHost, RoundRequest } from './round.ts'
import { protocolErrorOf, serveRound } from './round.ts'
import type { RegisteredTool } from './tool.ts'

/** What a host knows about a message beside its content. */
export interface Context {
  /** Who is calling, as the host authenticated it. */
  readonly principal?: string | undefined
  readonly cancel?: Cancel | undefined
  /** Sends a notification, as JSON text, on the request's own stream, before its response. */
  readonly notify?: ((text: string) => void) | undefined
  readonly overHttp?: boolean | undefined
}

/** What dispatch needs of its app. */
export interface DispatchHost extends RoundHost {
  tool(name: string): RegisteredTool | undefined
  discoverText(principal: string | undefined): string
  listToolsText(principal: string | undefined): string
}

/** Deepest nesting of arguments and answers. */
const DEEPEST = 100

/** Most answers in one round. */
const MOST_ANSWERS = 1_000

/** Gives the response, or nothing where none is due: to a notification, or to a call that was cancelled. */
export async function dispatch(host: DispatchHost, message: unknown, context: Context): Promise<Reply | undefined> {
  let envelope: Envelope
  let info: RequestInfo
  try {
    envelope = readEnvelope(message)
    if (envelope.id === undefined) return undefined
    if (envelope.method === 'initialize') throw unsupportedVersion(String(envelope.params?.['protocolVersion']))
    info = readMeta(envelope.params)
  } catch (error) {
    // Whatever is wrong with the message itself is the caller's mistake, and says so in the status.
    return errorReply(idOf(message), error instanceof ProtocolError ? error : internalError(), 400)
  }
  const { id, method, params = {} } = envelope
  try {
    switch (method) {
      case 'tools/call': {
        const result = await callTool(host, params, info, context)
        return result === undefined ? undefined : resultReply(id, result)
      }
      case 'tools/list':
        return resultReply(id, host.listToolsText(context.principal))
      case 'server/discover':
        return resultReply(id, host.discoverText(context.principal))
      default:
        throw new ProtocolError(METHOD_NOT_FOUND, `Method not found: ${method.slice(0, 100)}`)
    }
  } catch (error) {
    if (error instanceof ProtocolError) return errorReply(id, error)
    host.logger.error(`Serving ${method} failed.`, { error })
    return errorReply(id, internalError())
  }
}

async function callTool(
  host: DispatchHost,
  params: Record<string, unknown>,
  info: RequestInfo,
  context: Context,
): Promise<string | undefined> {
  const { name, arguments: args = {}, requestState: state, inputResponses } = params
  if (typeof name !== 'string') throw invalidParams('name must be a string')
  if (!isObject(args) || !withinDepth(args, DEEPEST)) {
    throw invalidParams(`arguments must be an object, nested at most ${DEEPEST} levels deep`)
  }
  const tool = host.tool(name)
  if (tool === undefined) throw invalidParams(`Unknown tool: ${name.slice(0, 128)}`)
  const request: RoundRequest = {
    info,
    args,
    answers: readAnswers(inputResponses),
    state,
    principal: context.principal,
    cancel: context.cancel,
    progress: progressOf(info, context),
    log: logOf(info, context),
    overHttp: context.overHttp ?? false,
  }
  try {
    const end = await serveRound(host, carriedBy(tool, args), request)
    if (end === undefined) return undefined
    if ('interimText' in end) return end.interimText
    if (tool.checkOutput === undefined) return resultText(end.value, host.serverMeta)
    return await structuredText(end.value, tool.checkOutput, host.serverMeta)
  } catch (error) {
    const protocolError = protocolErrorOf(error)
    if (protocolError === undefined) return errorText(messageOf(error), host.serverMeta)
    if (error !== protocolError) host.logger.error(`The tool "${name}" failed.`, { error })
    throw protocolError
  }
}

function carriedBy(tool: RegisteredTool, args: Record<string, unknown>): Carried {
  const { name: target, version, timeoutMs, forms } = tool
  return { method: 'tools/call', target, version, timeoutMs, forms, run: (io) => runTool(tool, args, io) }
}

function runTool(tool: RegisteredTool, args: Record<string, unknown>, io: Io): unknown {
  const checked = tool.checkInput(args)
  if (checked instanceof Promise) return checked.then((later) => tool.run(valid(tool, later), io))
  return tool.run(valid(tool, checked), io)
}

function valid(tool: RegisteredTool, checked: Checked<unknown>): unknown {
  if ('value' in checked) return checked.value
  throw new RallyError('ARGUMENTS', `Invalid arguments for ${tool.name}: ${checked.issues.join('; ')}`)
}

/** Untrusted: bounded and shaped here, matched to questions and validated by the flow. */
function readAnswers(given: unknown): Answers | undefined {
  if (given === undefined || given === null) return undefined
  if (!isObject(given)) throw invalidParams('inputResponses must be an object')
  if (!withinDepth(given, DEEPEST)) {
    throw invalidParams(`inputResponses must be nested at most ${DEEPEST} levels deep`)
  }
  const entries = Object.entries(given)
  if (entries.length > MOST_ANSWERS) throw invalidParams(`inputResponses must hold at most ${MOST_ANSWERS} answers`)
  const answers = Object.create(null) as Record<string, Record<string, unknown>>
  for (const [key, answer] of entries) {
    if (answer === null) continue
    if (!isObject(answer)) throw invalidParams(`inputResponses[${JSON.stringify(key.slice(0, 128))}] must be an object`)
    answers[key] = answer
  }
  return answers
}

function progressOf({ progressToken }: RequestInfo, { notify }: Context): Progress | undefined {
  if (progressToken === undefined || notify === undefined) return undefined
  return (progress, total, message) =>
    notify(notification('notifications/progress', { progressToken, progress, total, message }))
}

/** The client names the least level it wants; without one it gets no log at all. */
function logOf({ logLevel }: RequestInfo, { notify }: Context): Log | undefined {
  if (logLevel === undefined || notify === undefined) return undefined
  const levels: readonly string[] = LOGGING_LEVELS
  return (level, data, logger) => {
    if (levels.indexOf(level) >= levels.indexOf(logLevel)) {
      notify(notification('notifications/message', { level, logger, data: data ?? null }))
    }
  }
}

function notification(method: string, params: Record<string, unknown>): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params })
}

function invalidParams(why: string): ProtocolError {
  return new ProtocolError(INVALID_PARAMS, why)
}
