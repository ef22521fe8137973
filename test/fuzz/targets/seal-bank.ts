// An app with things that ask, and a client of each era that has values sealed by it and presents them to it.
import type { Authenticate, Io, Rally } from 'mcp-rally'
import { MemoryOnceStore, rally } from 'mcp-rally'
import { z } from 'zod'
import { callerNamed, request } from '../../wire/messages.ts'
import type { Json } from '../harness/json.ts'
import { isObject, parsed } from '../harness/json.ts'
import { META_STATE } from '../wire/messages.ts'
import { readEvents } from '../wire/sse.ts'

/** `state` is a requestState of 2026-07-28, `draft` one of a draft, `ask` and `event` are those of SEP-1685. */
export const PURPOSES = ['state', 'draft', 'session', 'ask', 'event'] as const
export type Purpose = (typeof PURPOSES)[number]

/** Who has something sealed, or presents it, and for which request. */
export type Caller = { purpose: Purpose; principal: string | null; request: number }

export interface Sealed {
  readonly text: string
  /** The session that it belongs to; empty for a `state`. */
  readonly session: string
  /** The id of the question that it came with. */
  readonly askId: unknown
}

export const REQUESTS: readonly { method: string; params: { [key: string]: Json } }[] = [
  { method: 'tools/call', params: { name: 'transfer', arguments: { to: 'bob', amount: 5 } } },
  { method: 'tools/call', params: { name: 'transfer', arguments: { to: 'bob', amount: 6 } } },
  { method: 'tools/call', params: { name: 'withdraw', arguments: { to: 'bob', amount: 5 } } },
  { method: 'prompts/get', params: { name: 'transfer', arguments: { to: 'bob', amount: '5' } } },
  { method: 'resources/read', params: { uri: 'bank://transfer' } },
]
const ACCEPT = { action: 'accept', content: { confirm: true } }

const authenticate: Authenticate = (from) => ({ principal: decodeURIComponent(from.header('x-user') ?? '') })

/** Anonymous callers have an instance that authenticates nobody. */
export class Bank {
  readonly once: boolean
  /** How often a handler has run. */
  ran = 0
  readonly #known: Rally
  readonly #anonymous: Rally

  constructor(name: string, key = '', once = false) {
    this.once = once
    const store = new MemoryOnceStore()
    const options = { name, version: '1', keys: [key], logger: { warn() {}, error() {} }, ...(once && { once: store }) }
    const revisions = ['2026-06-XX'] as const
    this.#known = this.#registered(rally({ ...options, revisions, http: { authenticate } }))
    this.#anonymous = this.#registered(rally({ ...options, revisions }))
  }

  #registered(app: Rally): Rally {
    const asks = async (io: Pick<Io, 'confirm'>): Promise<string> => {
      this.ran += 1
      return (await io.confirm('sure', 'Sure?')) && (await io.confirm('again', 'Again?')) ? 'Done' : 'Not done'
    }
    const input = z.object({ to: z.string(), amount: z.number() })
    for (const tool of ['transfer', 'withdraw']) app.tool(tool, { input }, (_args, io) => asks(io))
    const words = z.object({ to: z.string(), amount: z.string() })
    app.prompt('transfer', { arguments: words }, (_args, io) => asks(io))
    return app.resource('bank://transfer', { name: 'transfer' }, (io) => asks(io))
  }

  close(): void {
    this.#known.interrupt()
    this.#anonymous.interrupt()
  }

  #appFor(principal: string | null): Rally {
    return principal === null ? this.#anonymous : this.#known
  }

  /** Has a value sealed. A `state` is that of the given round. */
  async mint(caller: Caller, rounds: number): Promise<Sealed> {
    const { purpose, principal } = caller
    if (purpose === 'state') {
      let text = ''
      for (let round = 0; round < rounds; round += 1) {
        const retry = round === 0 ? {} : { requestState: text, inputResponses: { sure: ACCEPT } }
        text = textAt(parsed(await this.#dispatch(caller, retry)), 'result', 'requestState')
      }
      return { text, session: '', askId: 0 }
    }
    const session = await this.initialize(principal, purpose)
    if (purpose === 'session') return { text: session, session, askId: 0 }
    const response = await this.#post(principal, { jsonrpc: '2.0', id: 1, ...requestOf(caller) }, session)
    const said = await response.text()
    if (purpose === 'draft') return { text: textAt(parsed(said), 'result', 'requestState'), session, askId: 0 }
    const { id: eventId = '', data = '' } = readEvents(said).at(-1) ?? {}
    const question = parsed(data)
    const text = purpose === 'event' ? eventId : textAt(question, 'params', '_meta', META_STATE)
    return { text, session, askId: isObject(question) ? question['id'] : 0 }
  }

  /** Presents a sealed value. Returns status and text, or `undefined` where no client could send it. */
  async present(caller: Caller, { text, session, askId }: Sealed, isOther: boolean): Promise<string | undefined> {
    const { purpose, principal } = caller
    const { method, params } = requestOf(caller)
    const retry = { requestState: text, inputResponses: { sure: isOther ? { action: 'decline' } : ACCEPT } }
    const post = async (message: object, to = session): Promise<string> =>
      wordsOf(await this.#post(principal, { jsonrpc: '2.0', ...message }, to))
    try {
      switch (purpose) {
        case 'state':
          return `200 ${await this.#dispatch(caller, retry)}`
        case 'draft':
          return await post({ id: 2, method, params: { ...params, ...retry } })
        case 'session':
          return await post({ id: 2, method: 'ping' }, text)
        case 'ask':
          return await post({ id: askId, result: { ...retry.inputResponses.sure, _meta: { [META_STATE]: text } } })
        case 'event': {
          const headers = { ...headersOf(principal), 'Mcp-Session-Id': session, 'Last-Event-ID': text }
          return await wordsOf(await this.#appFor(principal).fetch(new Request(ENDPOINT, { headers })))
        }
      }
    } catch (error) {
      // A header cannot hold every text.
      if (error instanceof TypeError && /header|ByteString/i.test(error.message)) return undefined
      throw error
    }
  }

  /** The session of a draft, or of a client that carries its calls. */
  async initialize(principal: string | null, purpose: string): Promise<string> {
    const isDraft = purpose === 'draft'
    const protocolVersion = isDraft ? '2026-06-XX' : '2025-11-25'
    const capabilities = { elicitation: {}, ...(!isDraft && { state: { scopes: ['request'] } }) }
    const params = { protocolVersion, capabilities, clientInfo: { name: 'fuzz', version: '1' } }
    const response = await this.#post(principal, { jsonrpc: '2.0', id: 0, method: 'initialize', params })
    return response.headers.get('mcp-session-id') ?? ''
  }

  async #dispatch(caller: Caller, retry: object): Promise<string> {
    const { method, params } = requestOf(caller)
    const context = { caller: callerNamed(caller.principal) }
    const reply = await this.#appFor(caller.principal).dispatch(request(method, { ...params, ...retry }), context)
    return reply?.text ?? ''
  }

  #post(principal: string | null, message: object, session?: string): Promise<Response> {
    const json = { ...headersOf(principal), 'Content-Type': 'application/json' }
    const headers = session === undefined ? json : { ...json, 'Mcp-Session-Id': session }
    return this.#appFor(principal).fetch(
      new Request(ENDPOINT, { method: 'POST', headers, body: JSON.stringify(message) }),
    )
  }
}

const ENDPOINT = 'http://localhost/mcp'

function headersOf(principal: string | null): Record<string, string> {
  const accept = { Accept: 'application/json, text/event-stream' }
  return principal === null ? accept : { ...accept, 'X-User': encodeURIComponent(principal) }
}

function requestOf(caller: Caller): (typeof REQUESTS)[number] {
  return REQUESTS[caller.request % REQUESTS.length] as (typeof REQUESTS)[number]
}

/** A stream that was accepted is not read: what follows an answer may take its time. */
async function wordsOf(response: Response): Promise<string> {
  if (response.headers.get('content-type') !== 'text/event-stream') return `${response.status} ${await response.text()}`
  await response.body?.cancel()
  return `${response.status} a stream`
}

function textAt(value: unknown, ...path: string[]): string {
  for (const key of path) value = isObject(value) ? value[key] : undefined
  if (typeof value === 'string') return value
  throw new Error(`Nothing was sealed: there is no ${path.join('.')}.`)
}
