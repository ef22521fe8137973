// Every decision of an HTTP host: routes, admission, methods, body limits, authentication. The Node and the fetch host differ
// only in how they read a request and write its response.
import type { Authenticate, IdentifiedCaller } from '../auth/authenticate.ts'
import { authenticationErrorOf, checkAuthenticate, identify } from '../auth/authenticate.ts'
import { textOf } from '../protocol/byte-buffer.ts'
import type { Cancel } from '../protocol/cancel.ts'
import { INTERNAL_ERROR, INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import { checkLimits } from '../protocol/options.ts'
import type { App } from '../server/app.ts'
import type { AdmittedVisitor, AnswerPage } from '../server/page.ts'
import type { Reply } from '../server/reply.ts'
import { errorReply, internalError } from '../server/reply.ts'
import type { Admission, AdmissionOptions } from './admission.ts'
import { admission, corsHeaders, preflight } from './admission.ts'
import type { Sender } from './answer.ts'
import { answerBody } from './answer.ts'
import {
  EVENT_CORS,
  eventFailure,
  eventTokenIn,
  isParsedString,
  MAX_EVENT_BODY_BYTES,
  mayBeEvent,
  postEvent,
  refuseEvent,
} from './event-post.ts'
import { acceptsEvents, DEFAULT_KEEP_ALIVE_MS, KeepAlive } from './events.ts'
import type { ReadHeader } from './header-check.ts'
import type { LoadLimits, LoadOptions, Served } from './load.ts'
import { heapShare, load, loadLimits } from './load.ts'

/** How requests over HTTP are admitted, authenticated and bounded, on every host. */
export interface HttpOptions extends AdmissionOptions, LoadOptions {
  /** Says who is calling. Default: every caller is anonymous, and states are bound to that. */
  authenticate?: Authenticate
  /** The largest body, in bytes. Default 4 194 304. */
  maxBodyBytes?: number
  /** How often a quiet event stream gets a comment, in milliseconds. Default 15 000, and 5 000 in Bun, which closes idle ones. */
  keepAliveMs?: number
  /**
   * How long a client may read nothing of a response, in milliseconds. Then its connection is closed. What it reads shows in
   * steps of the system's send buffer, so leave time for a slow one. Default 60 000.
   */
  writeStallMs?: number
  /**
   * How many bytes of responses may wait in all for clients that do not read them. Past it the client with most to read is
   * disconnected. Only Node hosts see this. Default: an eighth of the heap's limit.
   */
  maxUnreadBytes?: number
}

/** One request as a host reads it, and its response as the host writes it. */
export interface HttpExchange extends Sender, Served {
  readonly method: string
  /** The path of the URL, without the query. */
  readonly path: string
  /** As the server was given it, for an authenticator. */
  readonly url: string
  readonly host: string | undefined
  /** Cancelled when the client has disconnected. */
  readonly cancel: Cancel
  /** Set by the endpoint as soon as the caller is authenticated. */
  caller: IdentifiedCaller | undefined
  /** Set by the endpoint if a user sends answers on the page by a link. */
  visitor: AdmittedVisitor | undefined
  /** The largest body. The endpoint lowers it for an event. */
  maxBodyBytes: number
  /** Reads at most `maxBodyBytes` of the body, then calls `receive`, or `receiveTooLarge`, of the endpoint. */
  readBody(): void
  /** Adds headers to the response, whatever that is. */
  addHeaders(headers: Readonly<Record<string, string>>): void
  /** Sends a notification as an event, before the reply. Returns `false` when it was dropped. */
  notify(text: string): boolean
  /** Sends the response; `undefined` is a 202 without a body. Does nothing when a response was sent already. */
  reply(reply: Reply | undefined): void
}

/** Answers a request to a path of its own, without authentication. */
type Route = (exchange: HttpExchange) => Reply

/** The status when a body exceeds `maxBodyBytes`. */
export const TOO_LARGE = 413

const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024
const DEFAULT_WRITE_STALL_MS = 60_000
const UNREAD_HEAP_SHARE = 8

/** How many bytes of notifications may wait for a slow reader. Further ones are dropped. */
export const MAX_WAITING_BYTES = 1024 * 1024

export class HttpEndpoint {
  readonly app: App
  readonly maxBodyBytes: number
  readonly keepAlive: KeepAlive
  readonly limits: LoadLimits
  readonly writeStallMs: number
  readonly maxUnreadBytes: number
  readonly #page: AnswerPage | undefined
  readonly #path: string | undefined
  readonly #authenticate: Authenticate | undefined
  readonly #admit: Admission
  readonly #allowedOrigins: AdmissionOptions['allowedOrigins']
  readonly #routes = new Map<string, Route>()
  readonly #takesEvents: boolean

  /** Messages are taken at `path`. Default: at every path that has no route. */
  constructor(app: App, options: HttpOptions, path?: string) {
    const { authenticate, maxBodyBytes = DEFAULT_MAX_BODY_BYTES, keepAliveMs = DEFAULT_KEEP_ALIVE_MS } = options
    const { writeStallMs = DEFAULT_WRITE_STALL_MS, maxUnreadBytes = heapShare(UNREAD_HEAP_SHARE) } = options
    checkAuthenticate(authenticate)
    checkLimits({ maxBodyBytes, writeStallMs, maxUnreadBytes })
    this.app = app
    this.#page = app.page?.url === undefined ? undefined : app.page
    this.maxBodyBytes = maxBodyBytes
    this.limits = loadLimits(options, maxBodyBytes)
    this.writeStallMs = writeStallMs
    this.maxUnreadBytes = maxUnreadBytes
    this.keepAlive = new KeepAlive(keepAliveMs)
    this.#path = path
    this.#authenticate = authenticate
    this.#admit = admission(options)
    this.#allowedOrigins = options.allowedOrigins
    this.#takesEvents = app.takesEvents
    for (const [at, text] of authenticate?.documents ?? []) this.#routes.set(at, publicDocument(text))
  }

  /**
   * The reply to any request while the process has too much to do. Hosts ask before they spend any work on a request. A browser
   * shows a page nothing of a refused preflight, and answering one costs no more.
   */
  overload(method: string | undefined): Reply | undefined {
    return method === 'OPTIONS' ? undefined : load.refusal(this.limits)
  }

  /** What a response to this page of another origin needs. `undefined` unless `allowedOrigins` names the origin. */
  crossOrigin(
    host: string | undefined,
    origin: string | null | undefined,
  ): Readonly<Record<string, string>> | undefined {
    if (this.#allowedOrigins === undefined || !origin || this.#admit(host, origin) !== undefined) return undefined
    return corsHeaders(origin, this.#allowedOrigins === '*')
  }

  /** Answers the request, after reading its body if it has one. */
  serve(exchange: HttpExchange): void {
    if (this.#page?.takes(exchange.url)) return this.#openPage(this.#page, exchange)
    if (this.#eventToken(exchange) !== undefined) return this.#serveEvent(exchange)
    const early = this.#routed(exchange) ?? this.#refused(exchange)
    if (early !== undefined) return exchange.reply(early)
    const authenticate = this.#authenticate
    if (authenticate === undefined) return this.#proceed(exchange)
    const { method, url, header } = exchange
    const busy = load.beginIdentifying(this.limits)
    if (busy !== undefined) return exchange.reply(busy)
    identify(authenticate, { method, url, header: (name) => header(name.toLowerCase()) }).then(
      (caller) => {
        load.endIdentifying()
        exchange.caller = caller
        this.#proceed(exchange)
      },
      (error: unknown) => {
        load.endIdentifying()
        const { status, message, headers } = authenticationErrorOf(error, this.app.logger)
        exchange.reply(refusal(status, message, headers))
      },
    )
  }

  /** For a user who opened a link. The page itself checks who that is. */
  #openPage(page: AnswerPage, exchange: HttpExchange): void {
    const { method, url, host, header } = exchange
    const problem = this.#admit(host, undefined)
    if (problem !== undefined) return exchange.reply(refusal(403, problem))
    if (Number(header('content-length')) > this.maxBodyBytes) return exchange.reply(this.#tooLarge())
    const busy = load.beginIdentifying(this.limits)
    if (busy !== undefined) return exchange.reply(busy)
    const request = { method, url, header: (name: string) => header(name.toLowerCase()) }
    void page.open(request, new URL(page.url ?? url).origin).then((opened) => {
      load.endIdentifying()
      if (!('kind' in opened)) return exchange.reply(opened)
      exchange.visitor = opened
      exchange.readBody()
    })
  }

  /** Answers the body that the exchange has read. */
  receive(exchange: HttpExchange, body: string, bytes: number): void {
    // Again: while the bodies of many requests were read, none of them counted.
    const { caller } = exchange
    const refused =
      load.refusal(this.limits) ??
      (caller === undefined ? undefined : load.refusalOf(caller.principal, bytes, this.limits))
    if (refused !== undefined) return exchange.reply(refused)
    load.enter(exchange, bytes)
    const token = this.#eventToken(exchange)
    if (token !== undefined) return this.#answerEvent(exchange, token, body)
    if (load.backlog.mustWait()) this.#answerLater(exchange, body)
    else this.#answer(exchange, body)
  }

  #eventToken(exchange: HttpExchange): string | undefined {
    if (!this.#takesEvents || !mayBeEvent(exchange.url)) return undefined
    const { path } = exchange
    return path === this.#path ? undefined : eventTokenIn(path)
  }

  #serveEvent(exchange: HttpExchange): void {
    const { method, header } = exchange
    exchange.addHeaders(EVENT_CORS)
    exchange.maxBodyBytes = Math.min(exchange.maxBodyBytes, MAX_EVENT_BODY_BYTES)
    const refused = refuseEvent(method, header)
    if (refused !== undefined) exchange.reply(refused)
    else if (Number(header('content-length')) > exchange.maxBodyBytes) this.receiveTooLarge(exchange)
    else exchange.readBody()
  }

  #answerEvent(exchange: HttpExchange, token: string, body: string): void {
    void postEvent(this.app, token, body).then((reply) => {
      load.leave(exchange)
      exchange.reply(reply)
    })
  }

  #answerLater(exchange: HttpExchange, body: string): void {
    const { maxLagMs, tooLate } = this.limits
    load.backlog.add((isLate) => {
      // Nobody waits for the answer to a cancelled request.
      if (!isLate && !exchange.cancel.cancelled) return this.#answer(exchange, body)
      load.leave(exchange)
      exchange.reply(tooLate)
    }, maxLagMs)
  }

  #answer(exchange: HttpExchange, body: string): void {
    const reply =
      exchange.visitor === undefined ? this.#answerMessage(exchange, body) : this.#answerPage(exchange, body)
    if (reply instanceof Promise) {
      void reply.then((later) => {
        load.leave(exchange)
        exchange.reply(later)
      })
    } else {
      load.leave(exchange)
      exchange.reply(reply)
    }
  }

  #answerMessage(exchange: HttpExchange, body: string): ReturnType<typeof answerBody> {
    const { header, cancel, caller } = exchange
    const notify = acceptsEvents(header('accept')) ? (text: string) => exchange.notify(text) : undefined
    return answerBody(this.app, body, exchange, { caller, cancel, notify, overHttp: true })
  }

  async #answerPage({ visitor }: HttpExchange, body: string): Promise<Reply | undefined> {
    return visitor && this.#page?.answer(visitor, body)
  }

  /** Answers a body that a parser has read already. It was bounded by that parser, and is held to our limit too. */
  receiveParsed(exchange: HttpExchange, parsed: unknown, advice: string): void {
    const isEvent = this.#eventToken(exchange) !== undefined
    // An event may be any JSON value. A message is an object.
    if (parsed === undefined || (parsed === null && !isEvent))
      return this.#receiveUnreadable(exchange, 'is missing', advice)
    const isText = typeof parsed === 'string' && !(isEvent && isParsedString(parsed, exchange.header))
    let body: string | undefined
    try {
      // As text again: what a parser made of it may be no JSON, and its size is not known otherwise.
      body = parsed instanceof Uint8Array ? textOf(parsed) : isText ? parsed : JSON.stringify(parsed)
    } catch {
      // It holds itself, or is nested too deeply.
    }
    if (body === undefined) return this.#receiveUnreadable(exchange, 'is not JSON', advice)
    const bytes = Buffer.byteLength(body)
    if (bytes > exchange.maxBodyBytes) this.receiveTooLarge(exchange)
    else this.receive(exchange, body, bytes)
  }

  #receiveUnreadable(exchange: HttpExchange, problem: string, advice: string): void {
    const why = `The body of this request was read before the MCP handler got it, and its parsed value ${problem}. ${advice}`
    this.app.logger.error(why)
    exchange.reply(errorReply(undefined, new ProtocolError(INTERNAL_ERROR, why), 500))
  }

  /** The body is larger than the `maxBodyBytes` of the exchange. */
  receiveTooLarge(exchange: HttpExchange): void {
    this.#refuseBody(exchange, `The body is larger than ${exchange.maxBodyBytes} bytes.`)
  }

  /** The body comes in too many tiny chunks. */
  receiveCrumbled(exchange: HttpExchange): void {
    const why = 'The body comes in thousands of chunks of a few bytes each. Send it in larger ones.'
    this.#refuseBody(exchange, why)
  }

  #refuseBody(exchange: HttpExchange, why: string): void {
    const isEvent = this.#eventToken(exchange) !== undefined
    exchange.reply(isEvent ? eventFailure(TOO_LARGE, why) : refusal(TOO_LARGE, why))
  }

  #routed(exchange: HttpExchange): Reply | undefined {
    if (this.#path === undefined && this.#routes.size === 0) return undefined
    const { path } = exchange
    if (path === this.#path) return undefined
    const route = this.#routes.get(path)
    if (route !== undefined) return route(exchange)
    if (this.#path === undefined) return undefined
    return refusal(404, `Nothing is served at this path; the endpoint is ${this.#path}.`)
  }

  #refused(exchange: HttpExchange): Reply | undefined {
    const { method, host, header } = exchange
    const origin = header('origin')
    const problem = this.#admit(host, origin)
    if (problem !== undefined) return refusal(403, problem)
    if (origin !== undefined && this.#allowedOrigins !== undefined) {
      exchange.addHeaders(corsHeaders(origin, this.#allowedOrigins === '*'))
      if (method === 'OPTIONS') return preflight(header)
    }
    if (method !== 'POST') {
      const allowed = this.#allowsGet(header) ? 'GET, POST' : 'POST'
      return method === 'GET' && allowed !== 'POST'
        ? undefined
        : refusal(405, 'Send messages by POST.', { Allow: allowed })
    }
    if (!isJson(header('content-type'))) return refusal(415, 'Content-Type must be application/json.')
    return Number(header('content-length')) > this.maxBodyBytes ? this.#tooLarge() : undefined
  }

  #proceed(exchange: HttpExchange): void {
    if (exchange.method === 'POST') exchange.readBody()
    else void this.#openStream(exchange).then((reply) => exchange.reply(reply))
  }

  /** A GET reads the events of a session of an older revision. */
  async #openStream({ header, cancel: peer, caller }: HttpExchange): Promise<Reply> {
    const { legacy, logger } = this.app
    try {
      if (legacy === undefined) return refusal(405, 'Send messages by POST.', { Allow: 'POST' })
      const takesEvents = acceptsEvents(header('accept'))
      return await legacy.get({ header, caller, takesEvents, peer })
    } catch (error) {
      logger.error('Opening a stream failed.', { error })
      return errorReply(undefined, internalError(), 500)
    }
  }

  #allowsGet(header: ReadHeader): boolean {
    return this.app.legacy !== undefined && header('mcp-session-id') !== undefined
  }

  #tooLarge(): Reply {
    return refusal(TOO_LARGE, `The body is larger than ${this.maxBodyBytes} bytes.`)
  }
}

/** A refusal before any message was read. */
export function refusal(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { ...errorReply(undefined, new ProtocolError(INVALID_REQUEST, message), status), headers }
}

const ANY_ORIGIN = { 'Access-Control-Allow-Origin': '*' }

/** Clients send their protocol version as a header, which makes a browser ask for permission first. */
const PREFLIGHT = { ...ANY_ORIGIN, 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': '*' }

/** A JSON document for everybody. It is the same for all callers, so neither Host nor Origin is checked. */
function publicDocument(text: string): Route {
  const headers = { 'Content-Type': 'application/json', ...ANY_ORIGIN }
  return ({ method }) => {
    if (method === 'GET') return { status: 200, headers, text }
    if (method === 'HEAD') return { status: 200, headers, text: '' }
    if (method === 'OPTIONS') return { status: 204, headers: PREFLIGHT, text: '' }
    return { status: 405, headers: { Allow: 'GET, HEAD, OPTIONS' }, text: '' }
  }
}

function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  return contentType !== undefined && /^application\/json\s*(;|$)/i.test(contentType)
}
