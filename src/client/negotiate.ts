// Finds out who the server is, and which revision the two sides have in common: a modern one, or else an older one.
import type { ClientErrorCode } from '../protocol/error-codes.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { declaredToOlder } from './capabilities.ts'
import type { ServerInfo } from './discovery.ts'
import { readDiscovery } from './discovery.ts'
import { ClientError, wrongOption } from './errors.ts'
import type { Channel, ChannelEvents } from './legacy/channel.ts'
import type * as Legacies from './legacy/index.ts'
import type { SessionOptions } from './legacy/session.ts'
import type { Connection } from './connection.ts'
import type { Limits } from './options.ts'
import { REVISIONS } from './revision.ts'
import { checkComplete } from './round.ts'
import type { ReceiveMessage, Transport } from './transports/transport.ts'

type Legacy = typeof Legacies

/** How a server is got to. */
export interface Route {
  /** What a server that says no name is called. */
  readonly address: string
  readonly open: (receive: ReceiveMessage) => Transport
  /** How an older one is, where there can be one. */
  readonly openLegacy?: (legacy: Legacy, events: ChannelEvents) => Channel
  /** Whether an older server may say nothing at all to what it does not know. */
  readonly mayIgnoreProbe?: boolean
}

export interface NegotiateOptions {
  readonly connection: Connection
  readonly route: Route
  readonly limits: Limits
  /** The only one to speak, if it is given. */
  readonly revision: string | undefined
  /** Ends the attempt. */
  readonly signal: AbortSignal | undefined
  readonly session: Pick<SessionOptions, 'info' | 'capabilities' | 'can' | 'answerers' | 'logger' | 'logLevel'>
}

/** For a server to begin to answer that may never do so. A slow one is asked again later. */
const PROBE_MS = 3_000

const NEWEST_OLDER = '2025-11-25'

export async function negotiate(introducing: NegotiateOptions): Promise<ServerInfo> {
  const { route, limits, revision } = introducing
  if (revision !== undefined) return introducedIn(revision, introducing)
  const isProbe = route.mayIgnoreProbe === true
  try {
    return await discover(introducing, isProbe ? Math.min(PROBE_MS, limits.timeoutMs) : limits.timeoutMs, !isProbe)
  } catch (error) {
    // Some older servers say nothing to what they do not know, and some end.
    const isDoubtful = isProbe && (isCode(error, 'TIMEOUT') || isCode(error, 'LOST'))
    if (route.openLegacy === undefined || !(isDoubtful || (await isOlder(error)))) throw error
    try {
      return await initialize(introducing, NEWEST_OLDER, false)
    } catch (olderError) {
      // It was slow, and is not old.
      if (isDoubtful && olderError instanceof ProtocolError) return discover(introducing, limits.timeoutMs)
      const isNeither = olderError instanceof ProtocolError || isCode(olderError, 'HTTP_STATUS')
      throw isNeither ? error : olderError
    }
  }
}

async function introducedIn(revision: string, introducing: NegotiateOptions): Promise<ServerInfo> {
  if (REVISIONS.includes(revision)) return discover(introducing, introducing.limits.timeoutMs)
  const { OLDER_NAMES } = await import('./legacy/index.ts')
  if (!OLDER_NAMES.includes(revision)) {
    const names = [...REVISIONS, ...OLDER_NAMES].join(', ')
    throw wrongOption(`revision: this client does not speak ${JSON.stringify(revision)}; it speaks ${names}.`)
  }
  return initialize(introducing, revision, true)
}

async function discover(
  { connection, route, signal }: NegotiateOptions,
  timeoutMs: number,
  isIdempotent = true,
): Promise<ServerInfo> {
  const method = 'server/discover'
  const deadline = connection.openDeadline(method, timeoutMs, signal)
  const { result } = await connection.withDeadline(deadline, () =>
    connection.request({ method, isIdempotent }, deadline),
  )
  checkComplete(result, method)
  const { server, revision } = readDiscovery(result, route.address)
  connection.useRevision(revision)
  return server
}

async function initialize(introducing: NegotiateOptions, revision: string, isPinned: boolean): Promise<ServerInfo> {
  const { connection, route, limits, signal, session: given } = introducing
  const { openLegacy } = route
  if (openLegacy === undefined) throw wrongOption('revision: an app in this process speaks no older one.')
  const legacy = await import('./legacy/index.ts')
  if (signal?.aborted === true) throw aborted(signal)
  const session = new legacy.Session(
    {
      ...given,
      capabilities: declaredToOlder(given.capabilities),
      limits,
      revision,
      isPinned,
      address: route.address,
      receive: (message, requestId) => connection.receive(message, requestId),
      nextId: () => connection.nextId(),
    },
    (events) => openLegacy(legacy, events),
  )
  try {
    const { revision: agreed, rounds, server } = await unlessAborted(session.start(), signal)
    connection.useSession(agreed, session, rounds)
    return server
  } catch (error) {
    // What could still turn out to be slow goes on being listened to.
    if (route.mayIgnoreProbe !== true || isCode(error, 'ABORTED')) await session.close()
    throw error
  }
}

async function unlessAborted<T>(introducing: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return introducing
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(aborted(signal))
    signal.addEventListener('abort', abort, { once: true })
    void introducing.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function aborted({ reason }: AbortSignal): ClientError {
  return new ClientError('ABORTED', 'initialize was aborted.', { cause: reason as unknown })
}

async function isOlder(error: unknown): Promise<boolean> {
  const legacy = await import('./legacy/index.ts')
  return legacy.isOlder(error)
}

function isCode(error: unknown, code: ClientErrorCode): boolean {
  return error instanceof ClientError && error.code === code
}
