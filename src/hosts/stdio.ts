// Standard streams as a host: one JSON message a line, any number of calls under way at once.
import type { Readable, Writable } from 'node:stream'
import { Cancel } from '../protocol/cancel.ts'
import { INVALID_REQUEST, PARSE_ERROR, ProtocolError } from '../protocol/errors.ts'
import { Lines } from '../protocol/lines.ts'
import type { RequestId } from '../protocol/messages.ts'
import type { App } from '../server/app.ts'
import type { LegacyConnection } from '../server/legacy.ts'
import { errorReply } from '../server/reply.ts'
import type { Resolved } from '../server/resolve.ts'
import { expectsResponse, isInitialize, isResponse, namesRevision } from '../server/message-kind.ts'

export interface StdioOptions {
  /** Default `process.stdin`. */
  input?: Readable
  /** Default `process.stdout`. */
  output?: Writable
  /** Longest line, in bytes. Default 4 194 304. */
  maxLineBytes?: number
}

const DEFAULT_MAX_LINE_BYTES = 4 * 1024 * 1024
/** Bytes of notifications that may wait for a slow reader; further ones are dropped. */
const MAX_WAITING_BYTES = 1024 * 1024

/** Serves an app over standard streams. Resolves when the input ends: the client is gone, and its calls are cancelled. */
export function stdio(app: App, options: StdioOptions = {}): Promise<void> {
  const { input = process.stdin, output = process.stdout, maxLineBytes = DEFAULT_MAX_LINE_BYTES } = options
  const underWay = new Map<RequestId, Cancel>()
  const send = (text: string): void => void output.write(`${text}\n`)
  const sendUnlessBehind = (text: string): boolean => {
    if (output.writableLength > MAX_WAITING_BYTES) return false
    send(text)
    return true
  }
  /** Where the client began with the handshake of an older revision. */
  let older: Promise<LegacyConnection> | undefined

  const receive = (line: string): void => {
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch {
      return send(errorReply(undefined, new ProtocolError(PARSE_ERROR, 'Parse error: the line is not JSON')).text)
    }
    const request = app.resolve(message)
    if (app.legacy !== undefined && (older === undefined ? isInitialize(request) : !namesRevision(request))) {
      older ??= app.legacy.connect({ send, notify: sendUnlessBehind })
      return void older.then(
        (connection) => connection.receive(Array.isArray(message) ? message.map((each) => app.resolve(each)) : request),
        (error: unknown) => app.logger.error('Serving a 2025-era client failed.', { error }),
      )
    }
    // Nobody was asked anything here, and an answer to an answer could be taken for one.
    if (isResponse(request)) return
    cancelNamed(request, underWay)
    const { id } = request
    if (id !== undefined && underWay.has(id)) {
      return send(errorReply(id, new ProtocolError(INVALID_REQUEST, 'Invalid request: this id is in use')).text)
    }
    const cancel = new Cancel()
    if (id !== undefined) underWay.set(id, cancel)
    const notify = (text: string): boolean => {
      return !cancel.cancelled && sendUnlessBehind(text)
    }
    void app.serve(request, { cancel, notify }).then((reply) => {
      if (id !== undefined) underWay.delete(id)
      if (reply !== undefined && !cancel.cancelled) send(reply.text)
    })
  }

  app.work()
  return new Promise((resolve) => {
    const lines = new Lines(maxLineBytes, receive, () =>
      send(
        errorReply(undefined, new ProtocolError(INVALID_REQUEST, `The line is longer than ${maxLineBytes} bytes`)).text,
      ),
    )
    const over = (): void => {
      for (const cancel of underWay.values()) cancel.cancel()
      underWay.clear()
      void older?.then((connection) => connection.close()).catch(() => {})
      resolve()
    }
    // Text, where somebody has given the stream an encoding.
    input.on('data', (chunk: Buffer | string) => lines.add(typeof chunk === 'string' ? Buffer.from(chunk) : chunk))
    input.once('end', over)
    input.once('close', over)
    input.once('error', over)
    // A reader that went away is no reason to die of it: the end of the input follows.
    output.on('error', () => {})
  })
}

/** Ends the call that a cancellation names. A request of that name is none, and is answered like any other. */
function cancelNamed(message: Resolved, underWay: Map<RequestId, Cancel>): void {
  if (message.method !== 'notifications/cancelled' || expectsResponse(message)) return
  const requestId = message.params?.['requestId']
  if (typeof requestId === 'string' || typeof requestId === 'number') underWay.get(requestId)?.cancel()
}
