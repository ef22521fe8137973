// The answer to one POST, as it comes in.
import { isResponse, parseMessage, readResponse } from './message.ts'
import { badResponse, ClientError, lost, tooLarge, unreachable } from '../errors.ts'
import { reasonOf, shown } from '../../protocol/text.ts'
import type { HttpResponseListener } from './http-client.ts'
import { isObject } from '../../protocol/json.ts'
import { EventReader } from './sse.ts'
import type { ReceiveMessage, ResponseCallbacks } from './transport.ts'

/** For a server to end a stream once it has given the response: then the connection can be used again. */
const LAST_WORDS_MS = 500

export class HttpAnswer implements HttpResponseListener {
  readonly #id: number
  readonly #maxBytes: number
  readonly #receive: ReceiveMessage
  readonly #callbacks: ResponseCallbacks
  #end: () => void = () => {}
  #isOver = false
  #status = 0
  #header: (name: string) => string | undefined = () => undefined
  #chunks: Uint8Array[] = []
  #bytes = 0
  #events: EventReader | undefined
  #ending: NodeJS.Timeout | undefined

  constructor(id: number, maxBytes: number, receive: ReceiveMessage, callbacks: ResponseCallbacks) {
    this.#id = id
    this.#maxBytes = maxBytes
    this.#receive = receive
    this.#callbacks = callbacks
  }

  /** Gives what the caller ends it with. */
  endedBy(end: () => void): () => void {
    this.#end = end
    return () => {
      this.#isOver = true
      end()
    }
  }

  head(status: number, header: (name: string) => string | undefined): void {
    this.#status = status
    this.#header = header
    if (isEventStream(header('content-type'))) {
      this.#events = new EventReader(
        this.#maxBytes,
        (data) => this.#event(data),
        () => this.#fail(tooLarge(this.#maxBytes)),
      )
    } else if (Number(header('content-length')) > this.#maxBytes) {
      this.#fail(tooLarge(this.#maxBytes))
    }
  }

  data(chunk: Uint8Array): void {
    if (this.#isOver) return
    if (this.#events !== undefined) return this.#events.add(chunk)
    this.#bytes += chunk.byteLength
    if (this.#bytes <= this.#maxBytes) this.#chunks.push(chunk)
    else this.#fail(tooLarge(this.#maxBytes))
  }

  end(): void {
    if (this.#ending !== undefined) clearTimeout(this.#ending)
    if (this.#isOver) return
    if (this.#events !== undefined) return this.#fail(lost('the stream ended before it'))
    this.#answer(this.#text())
  }

  failed(error: unknown, wasSent: boolean): void {
    if (this.#ending !== undefined) clearTimeout(this.#ending)
    const why = reasonOf(error)
    this.#fail(wasSent ? lost(why, error) : unreachable(why, error))
  }

  #text(): string {
    const [first] = this.#chunks
    const whole = this.#chunks.length === 1 && first instanceof Buffer ? first : Buffer.concat(this.#chunks)
    return whole.toString('utf8')
  }

  #answer(text: string): void {
    try {
      const refusal = refusalOf(this.#status, text, this.#header)
      if (refusal !== undefined) return this.#fail(refusal)
      const answered = readResponse(parseMessage(text), this.#id, this.#bytes)
      this.#isOver = true
      this.#callbacks.resolve(answered)
    } catch (error) {
      this.#fail(error as ClientError)
    }
  }

  #event(data: string): void {
    if (this.#isOver) return
    try {
      const message = parseMessage(data)
      if (!isResponse(message)) return this.#receive(message, this.#id)
      const answered = readResponse(message, this.#id, data.length)
      this.#isOver = true
      this.#ending = setTimeout(this.#end, LAST_WORDS_MS).unref()
      this.#callbacks.resolve(answered)
    } catch (error) {
      this.#fail(error as ClientError)
    }
  }

  #fail(error: ClientError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#chunks = []
    this.#end()
    this.#callbacks.reject(error)
  }
}

/** A status that is no answer to the request. One with a JSON-RPC error in its body is one, whatever its number. */
export function refusalOf(
  status: number,
  text: string,
  header: (name: string) => string | undefined,
): ClientError | undefined {
  if (status === 200) return undefined
  const said = messageIn(text)
  const why = said === undefined ? '' : `: ${said}`
  switch (status) {
    case 401:
    case 403:
      return new ClientError('UNAUTHORIZED', `The server refuses this caller (HTTP ${status})${why}`, {
        status,
        ...challengeIn(header('www-authenticate')),
      })
    case 502:
    case 503:
    case 504:
      return lost(`the server is not available (HTTP ${status})${why}`)
  }
  if (said !== undefined) return undefined
  if (status > 200 && status < 300) return text === '' ? badResponse(`HTTP ${status} brings no response`) : undefined
  const location = header('location')
  const where = location === undefined ? '' : `, with a redirection to ${shown(location)}, which is not followed`
  return new ClientError('HTTP_STATUS', `The server answers HTTP ${status} and nothing of the protocol${where}.`, {
    status,
  })
}

function challengeIn(challenge: string | undefined): { challenge?: string } {
  return challenge === undefined ? {} : { challenge }
}

/** What the JSON-RPC error in a body says. */
function messageIn(text: string): string | undefined {
  try {
    const { error } = parseMessage(text)
    return isObject(error) && typeof error['message'] === 'string' ? error['message'].slice(0, LONGEST) : undefined
  } catch {
    return undefined
  }
}

const LONGEST = 500

export function isEventStream(type: string | undefined): boolean {
  return type !== undefined && /^text\/event-stream\s*(;|$)/i.test(type)
}
