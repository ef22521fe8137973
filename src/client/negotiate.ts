// Negotiates the revision that client and server both support: the current one, or else a legacy one.
import type { ClientErrorCode } from '../protocol/error-codes.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { OPT_IN } from '../protocol/revisions/rounds.ts'
import { shown } from '../protocol/text.ts'
import { declaredToLegacy } from './capabilities.ts'
import type { Connection } from './connection.ts'
import type { ServerInfo } from './discovery.ts'
import { NoCommonRevision, readDiscovery, REVISIONS } from './discovery.ts'
import { ClientError, stopped, wrongOption } from './errors.ts'
import type { Channel, ChannelEvents } from './legacy/channel.ts'
import type * as Legacies from './legacy/index.ts'
import type { SessionOptions } from './legacy/session.ts'
import type { Limits } from './options.ts'
import type { CallerKey } from './reads.ts'
import { checkComplete } from './round.ts'
import type { ReceiveMessage, Transport } from './transports/transport.ts'

type Legacy = typeof Legacies

type OpenChannel = (legacy: Legacy, events: ChannelEvents) => Channel

/** How to reach a server. */
export interface Route {
  /** The name of a server that does not say its name. */
  readonly address: string
  readonly open: (receive: ReceiveMessage) => Transport
  /** Says who is calling, where that can change during a connection: by a login, or by headers from a function. */
  readonly callerKey?: () => CallerKey | Promise<CallerKey>
  /** Called when the connection is closed. */
  readonly close?: () => void
  /** Missing if the server cannot be a legacy one. */
  readonly openLegacy?: OpenChannel
  /** The transport of 2024-11-05, for a server that takes no POST at its address. */
  readonly openSse?: OpenChannel
  /** Why the process of the server exited without an answer, if it did. */
  readonly exitReason?: () => string | undefined
  /** True if a legacy server may not answer a request that it does not know. */
  readonly mayIgnoreProbe?: boolean
}

export interface NegotiateOptions {
  readonly connection: Connection
  readonly route: Route
  readonly limits: Limits
  /** The only revision to use, or a draft to prefer. Undefined: the newest release that the server supports. */
  readonly revision: string | undefined
  /** Aborts the negotiation. */
  readonly signal: AbortSignal | undefined
  readonly session: Pick<SessionOptions, 'info' | 'capabilities' | 'can' | 'answerers' | 'logger' | 'logLevel'>
}

/** How long to wait for a server that may never answer. If it turns out to be slow, it is asked again. */
const PROBE_MS = 3_000

const DRAFTS: readonly string[] = OPT_IN

const NEWEST_LEGACY = '2025-11-25'

/** Returns what the server says about itself. The connection then uses the revision that was chosen. */
export async function negotiate(options: NegotiateOptions): Promise<ServerInfo> {
  try {
    return await agree(options)
  } catch (error) {
    const reason = hasCode(error, 'LOST') ? options.route.exitReason?.() : undefined
    throw reason === undefined ? error : stopped(reason, error)
  }
}

async function agree(options: NegotiateOptions): Promise<ServerInfo> {
  const { route, limits, revision } = options
  if (revision !== undefined) return useRevision(revision, options)
  const isProbe = route.mayIgnoreProbe === true
  const timeoutMs = isProbe ? Math.min(PROBE_MS, limits.timeoutMs) : limits.timeoutMs
  let isAnswered = false
  try {
    const result = await requestDiscovery(options, timeoutMs, !isProbe)
    isAnswered = true
    return useDiscovery(options, result)
  } catch (error) {
    // Some legacy servers do not answer an unknown request, and some exit.
    const isUnclear = isProbe && (hasCode(error, 'TIMEOUT') || hasCode(error, 'LOST'))
    const isLegacy = isAnswered ? mayBeLegacy(error) : isUnclear || (await isLegacyServer(error))
    if (route.openLegacy === undefined || !isLegacy) throw error
    try {
      return await initialize(options, NEWEST_LEGACY, 'preferred')
    } catch (legacyError) {
      // It answered now, so it was slow, and is not a legacy server.
      if (isUnclear && legacyError instanceof ProtocolError) return discover(options, limits.timeoutMs)
      throw isNoAnswer(legacyError) || (!isUnclear && isLost(legacyError)) ? error : legacyError
    }
  }
}

/** True if the server did not understand `initialize` either. */
function isNoAnswer(error: unknown): boolean {
  return error instanceof ProtocolError || hasCode(error, 'HTTP_STATUS') || hasCode(error, 'BAD_RESPONSE')
}

/** A server that answered discovery, and then nothing, is described by that answer. */
function isLost(error: unknown): boolean {
  return hasCode(error, 'LOST') || hasCode(error, 'TIMEOUT') || hasCode(error, 'CONNECTION')
}

async function useRevision(revision: string, options: NegotiateOptions): Promise<ServerInfo> {
  if (REVISIONS.includes(revision)) return discover(options, options.limits.timeoutMs)
  const { OLDER_NAMES } = await import('./legacy/index.ts')
  if (!OLDER_NAMES.includes(revision)) {
    const names = [...REVISIONS, ...OLDER_NAMES].join(', ')
    throw wrongOption(`revision must be one of ${names}, got ${shown(revision)}.`)
  }
  // A draft is an experiment of both sides. A server that does not take part in it is used as it is.
  if (!DRAFTS.includes(revision)) return initialize(options, revision, 'only')
  try {
    return await initialize(options, revision, 'preferred')
  } catch (error) {
    if (!isNoAnswer(error)) throw error
    return agree({ ...options, revision: undefined })
  }
}

async function discover(options: NegotiateOptions, timeoutMs: number): Promise<ServerInfo> {
  return useDiscovery(options, await requestDiscovery(options, timeoutMs, true))
}

const DISCOVER = 'server/discover'

async function requestDiscovery(
  { connection, signal }: NegotiateOptions,
  timeoutMs: number,
  isIdempotent: boolean,
): Promise<Record<string, unknown>> {
  const deadline = connection.openDeadline(DISCOVER, timeoutMs, signal)
  const { result } = await connection.withDeadline(deadline, () =>
    connection.request({ method: DISCOVER, isIdempotent }, deadline),
  )
  return result
}

function useDiscovery({ connection, route }: NegotiateOptions, result: Record<string, unknown>): ServerInfo {
  checkComplete(result, DISCOVER)
  const { server, revision } = readDiscovery(result, route.address)
  connection.useRevision(revision)
  return server
}

/** True for a result that names no revision of this client. Whatever else is wrong with it, the server is a modern one. */
function mayBeLegacy(error: unknown): boolean {
  return error instanceof NoCommonRevision && error.mayBeLegacy
}

async function initialize(
  options: NegotiateOptions,
  revision: string,
  proposes: SessionOptions['proposes'],
): Promise<ServerInfo> {
  const { openLegacy, openSse } = options.route
  if (openLegacy === undefined) {
    throw wrongOption(`revision: an app in this process supports only ${REVISIONS.join(', ')}, got ${shown(revision)}.`)
  }
  try {
    return await startSession(options, { revision, proposes }, openLegacy)
  } catch (error) {
    if (openSse === undefined || !isPostRefused(error)) throw error
    try {
      return await startSession(options, { revision, proposes }, openSse)
    } catch (sseError) {
      // There is no such stream either, so the first refusal says more.
      throw isNoAnswer(sseError) ? error : sseError
    }
  }
}

async function startSession(
  { connection, route, limits, signal, session: given }: NegotiateOptions,
  proposal: Pick<SessionOptions, 'revision' | 'proposes'>,
  open: OpenChannel,
): Promise<ServerInfo> {
  const legacy = await import('./legacy/index.ts')
  if (signal?.aborted === true) throw aborted(signal)
  const session = new legacy.Session(
    {
      ...given,
      ...proposal,
      capabilities: declaredToLegacy(given.capabilities),
      limits,
      address: route.address,
      receive: (message, requestId) => connection.receive(message, requestId),
      nextId: () => connection.nextId(),
    },
    (events) => open(legacy, events),
  )
  try {
    const { revision: agreed, rounds, tasks, server } = await unlessAborted(session.start(), signal)
    connection.useSession({ revision: agreed, transport: session, retryFormat: rounds, tasks })
    return server
  } catch (error) {
    // A server that may only be slow is asked again, over the same process.
    if (route.mayIgnoreProbe !== true || hasCode(error, 'ABORTED')) await session.close()
    throw error
  }
}

/** True if the server takes no POST at its address, which is how servers with a stream of 2024-11-05 answer. */
function isPostRefused(error: unknown): boolean {
  if (!(error instanceof ClientError) || error.code !== 'HTTP_STATUS') return false
  const { status = 0 } = error
  return status >= 400 && status < 500
}

async function unlessAborted<T>(starting: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return starting
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(aborted(signal))
    signal.addEventListener('abort', abort, { once: true })
    void starting.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function aborted({ reason }: AbortSignal): ClientError {
  return new ClientError('ABORTED', 'initialize was aborted.', { cause: reason as unknown })
}

async function isLegacyServer(error: unknown): Promise<boolean> {
  const legacy = await import('./legacy/index.ts')
  return legacy.isLegacyServer(error)
}

function hasCode(error: unknown, code: ClientErrorCode): boolean {
  return error instanceof ClientError && error.code === code
}
