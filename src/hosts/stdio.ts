// Standard streams as a host: one JSON message per line, and any number of calls at once.
import type { Readable, Writable } from 'node:stream'
import type { AuthenticatedCaller } from '../auth/authenticate.ts'
import { callerOf, fixedCaller } from '../auth/authenticate.ts'
import { ByteBudget } from '../protocol/byte-buffer.ts'
import { Cancel } from '../protocol/cancel.ts'
import { INVALID_REQUEST, PARSE_ERROR, ProtocolError } from '../protocol/errors.ts'
import { Lines } from '../protocol/lines.ts'
import type { RequestId } from '../protocol/messages.ts'
import { checkLimits } from '../protocol/options.ts'
import type { App } from '../server/app.ts'
import type { LegacyConnection } from '../server/legacy.ts'
import { errorReply } from '../server/reply.ts'
import type { Resolved } from '../server/resolve.ts'
import { bufferedBytes, overloaded } from './load.ts'
import type { LocalPage } from './local-page.ts'
import { expectsResponse, isInitialize, isResponse, isWaiting, namesRevision } from '../server/message-kind.ts'

/** Options of `stdio()`. */
export interface StdioOptions {
  /** Default `process.stdin`. */
  input?: Readable
  /** Default `process.stdout`. */
  output?: Writable
  /** Who is at the other end: what handlers see as `io.caller`, and what states and tasks are bound to. Default: anonymous. */
  caller?: AuthenticatedCaller
  /** The longest line, in bytes. Default 4 194 304. */
  maxLineBytes?: number
  /** How many calls run at a time. A further one is answered with an error. Default 1 000. */
  maxInFlight?: number
  /**
   * How many bytes the lines of all requests may have that run or wait. A further request is answered with an error. Default: a
   * thirty-second of the heap's limit, because a parsed line takes up to 20 times its size, and at least two of the longest lines.
   */
  maxBufferedBytes?: number
}

const DEFAULT_MAX_LINE_BYTES = 4 * 1024 * 1024
const DEFAULT_MAX_IN_FLIGHT = 1_000
/** How many bytes of responses may wait for a reader that does not read. Then nothing is read from it either. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024
/** How many bytes of notifications may wait for a slow reader. Further ones are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024

/** Serves an app over standard streams. Resolves when the input ends: the client has left, and its calls are cancelled. */
export function stdio(app: App, options: StdioOptions = {}): Promise<void> {
  const { input = process.stdin, output = process.stdout, maxLineBytes = DEFAULT_MAX_LINE_BYTES } = options
  const { maxInFlight = DEFAULT_MAX_IN_FLIGHT, maxBufferedBytes = bufferedBytes(maxLineBytes) } = options
  checkLimits({ maxInFlight, maxBufferedBytes })
  const caller = options.caller && fixedCaller(callerOf(options.caller, 'stdio(): `caller`'))
  const running = new Map<RequestId, Cancel>()
  let inFlight = 0
  const buffered = new ByteBudget(maxBufferedBytes)
  const send = (text: string): void => {
    output.write(`${text}\n`)
    if (output.writableLength > MAX_UNREAD_BYTES) input.pause()
  }
  const sendUnlessBehind = (text: string): boolean => {
    if (output.writableLength > MAX_WAITING_BYTES) return false
    send(text)
    return true
  }
  /** Set when the client began with the handshake of an older revision. */
  let older: Promise<LegacyConnection> | undefined

  const receive = (line: string, bytes: number): void => {
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch {
      return send(errorReply(undefined, new ProtocolError(PARSE_ERROR, 'Parse error: the line is not JSON')).text)
    }
    const request = app.resolve(message)
    const { id } = request
    const { legacy } = app
    const isOlder = legacy !== undefined && (older === undefined ? isInitialize(request) : !namesRevision(request))
    if (!isOlder) {
      // The server asked nothing, and the client could take an error for a response to a request of its own.
      if (isResponse(request)) return
      cancelNamed(request, running)
      if (id !== undefined && running.has(id)) {
        return send(errorReply(id, new ProtocolError(INVALID_REQUEST, 'Invalid request: this id is in use')).text)
      }
    }
    const isRequest = !isResponse(request) && (id !== undefined || Array.isArray(message))
    // One that only waits has a limit of its own.
    const calls = !isRequest || isWaiting(request) ? 0 : Array.isArray(message) ? message.length : 1
    if (calls > 0 && inFlight >= maxInFlight) {
      return send(errorReply(id, overloaded(`${maxInFlight} calls are running already (\`maxInFlight\`)`)).text)
    }
    if (isRequest && !buffered.take(bytes)) {
      const why = `the lines of all requests have more than ${maxBufferedBytes} bytes (\`maxBufferedBytes\`)`
      return send(errorReply(id, overloaded(why)).text)
    }
    inFlight += calls
    const leave = (): void => {
      inFlight -= calls
      if (isRequest) buffered.release(bytes)
    }
    if (isOlder) {
      older ??= legacy.connect({ caller, send, notify: sendUnlessBehind })
      return void older.then(
        (connection) => connection.receive(request, leave),
        (error: unknown) => {
          leave()
          app.logger.error('Serving a 2025-era client failed.', { error })
        },
      )
    }
    const cancel = new Cancel()
    if (id !== undefined) running.set(id, cancel)
    const notify = (text: string): boolean => {
      return !cancel.cancelled && sendUnlessBehind(text)
    }
    void app.serve(request, { caller, cancel, notify, overPipe: true }).then((reply) => {
      leave()
      if (id !== undefined) running.delete(id)
      if (reply !== undefined && !cancel.cancelled) send(reply.text)
    })
  }

  const closePage = servePageLocally(app)
  app.work()
  return new Promise((resolve) => {
    const lines = new Lines(maxLineBytes, receive, () =>
      send(
        errorReply(undefined, new ProtocolError(INVALID_REQUEST, `The line is longer than ${maxLineBytes} bytes`)).text,
      ),
    )
    const over = (): void => {
      for (const cancel of running.values()) cancel.cancel()
      running.clear()
      closePage()
      void older?.then((connection) => connection.close()).catch(() => {})
      resolve()
    }
    // Chunks are strings when an encoding was set on the stream.
    input.on('data', (chunk: Buffer | string) => lines.add(typeof chunk === 'string' ? Buffer.from(chunk) : chunk))
    output.on('drain', () => input.resume())
    input.once('end', over)
    input.once('close', over)
    input.once('error', over)
    // A reader that has left must not crash the process: the end of the input follows, which must be read for that.
    output.on('error', () => input.resume())
    output.on('close', () => input.resume())
  })
}

/** The page by a link is on this machine, from the first link on. Returns a function that closes it. */
function servePageLocally({ page, logger }: App): () => void {
  if (page === undefined) return () => {}
  let opening: Promise<LocalPage> | undefined
  let isClosed = false
  page.openLocally = async () => {
    opening ??= import('./local-page.ts').then(({ openLocalPage }) => openLocalPage(page, logger))
    const { url, close } = await opening
    if (isClosed) close()
    return url
  }
  return () => {
    isClosed = true
    page.openLocally = undefined
    void opening?.then(({ close }) => close()).catch(() => {})
  }
}

/** Stops the call that a cancellation names. Only a notification cancels: a request with the same method does not. */
function cancelNamed(message: Resolved, running: Map<RequestId, Cancel>): void {
  if (message.method !== 'notifications/cancelled' || expectsResponse(message)) return
  const requestId = message.params?.['requestId']
  if (typeof requestId === 'string' || typeof requestId === 'number') running.get(requestId)?.cancel()
}
