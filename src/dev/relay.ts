// Keeps the client of a stdio server connected while the server restarts. Each message is one line of JSON.
//
// 1. Lines that arrive during a restart wait for the next process.
// 2. A request that the old process took and did not answer gets an error. It is never sent twice.
// 3. A 2025-era client says hello once: its handshake is repeated to each new process, and that response is dropped.
// 4. Lines that are not messages pass through, so a server over HTTP may log to its standard output.
import { isObject } from '../protocol/json.ts'

/** A process that runs. */
interface Server {
  send(line: string): void
}

type State =
  | { readonly is: 'running'; readonly server: Server }
  /** Sent the handshake, whose response has this id. */
  | { readonly is: 'greeting'; readonly server: Server; readonly id: string }
  | { readonly is: 'restarting' }
  | { readonly is: 'crashed' }

const INTERNAL_ERROR = -32603
const MOST_WAITING = 1_000

export class Relay {
  readonly #toClient: (line: string) => void
  /** Requests that the server has, by the JSON of their ids. */
  readonly #open = new Map<string, unknown>()
  readonly #waiting: string[] = []
  #handshake: { readonly id: string; readonly lines: readonly string[] } | undefined
  #state: State = { is: 'restarting' }
  #hasClient = false

  constructor(toClient: (line: string) => void) {
    this.#toClient = toClient
  }

  /** True once a message came: the input is that of a client, and not of a terminal or of nobody. */
  get hasClient(): boolean {
    return this.#hasClient
  }

  started(server: Server): void {
    if (this.#handshake === undefined) return this.#run(server)
    const { id, lines } = this.#handshake
    this.#state = { is: 'greeting', server, id }
    server.send(lines[0] ?? '')
  }

  /** `crashed`: the next start may be far away, so requests are answered now. */
  stopped(how: 'restarting' | 'crashed'): void {
    this.#state = { is: how }
    for (const id of this.#open.values()) this.#fail(id, 'The server was restarted while it ran this request')
    this.#open.clear()
    if (how === 'crashed') for (const line of this.#waiting.splice(0)) this.fromClient(line)
  }

  fromClient(line: string): void {
    const message = messageIn(line)
    if (message !== undefined) this.#hasClient = true
    if (message?.['method'] === 'initialize') this.#handshake = { id: JSON.stringify(message['id']), lines: [line] }
    if (message?.['method'] === 'notifications/initialized' && this.#handshake !== undefined) {
      this.#handshake = { ...this.#handshake, lines: [this.#handshake.lines[0] ?? '', line] }
    }
    const state = this.#state
    if (state.is === 'running') return this.#send(state.server, line, message)
    if (state.is === 'crashed' || this.#waiting.length >= MOST_WAITING) {
      if (isRequest(message)) this.#fail(message['id'], 'The server does not run. Its terminal or log says why')
      return
    }
    this.#waiting.push(line)
  }

  fromServer(line: string): void {
    const message = messageIn(line)
    if (message !== undefined && 'id' in message && !('method' in message)) {
      const id = JSON.stringify(message['id'])
      if (this.#state.is === 'greeting' && this.#state.id === id) {
        const { server } = this.#state
        for (const rest of this.#handshake?.lines.slice(1) ?? []) server.send(rest)
        return this.#run(server)
      }
      this.#open.delete(id)
    }
    this.#toClient(line)
  }

  #run(server: Server): void {
    this.#state = { is: 'running', server }
    for (const line of this.#waiting.splice(0)) this.#send(server, line, messageIn(line))
  }

  #send(server: Server, line: string, message: Readonly<Record<string, unknown>> | undefined): void {
    if (isRequest(message)) this.#open.set(JSON.stringify(message['id']), message['id'])
    server.send(line)
  }

  #fail(id: unknown, message: string): void {
    this.#toClient(JSON.stringify({ jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message } }))
  }
}

function messageIn(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const message: unknown = JSON.parse(line)
    return isObject(message) ? message : undefined
  } catch {
    return undefined
  }
}

function isRequest(
  message: Readonly<Record<string, unknown>> | undefined,
): message is Readonly<Record<string, unknown>> {
  return message !== undefined && 'id' in message && 'method' in message
}
