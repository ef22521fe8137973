// Serves clients that are asked by a link: the user opens a page of this server, which shows the same form as an MCP App.
//
// 1. A visitor sees and answers a call only as the principal that made it, unless the author lets everybody answer who has the link.
// 2. A GET changes nothing: programs that look at links must not answer them. A POST must come from the page: from its origin, as
//    JSON, with the key that only the page for this visitor and this call contains.
// 3. What is wrong, unknown, expired or somebody else's looks the same.
// 4. A round that the page runs has the caller and the client of the call itself, as a task has.
import { randomBytes } from 'node:crypto'
import { MissingCapability } from '../flow/errors.ts'
import { isPublicProtocolError, RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { Result } from '../protocol/revisions/rounds.ts'
import { Unavailable } from '../protocol/unavailable.ts'
import { InvalidState } from '../seal/errors.ts'
import type { AppsRequest, PageServer, ServedInApps } from '../server/apps.ts'
import { NO_ROOM } from '../server/apps.ts'
import { readCapabilities } from '../server/capabilities.ts'
import { errorText, plainText } from '../server/content.ts'
import type { AppServices, RequestContext } from '../server/context.ts'
import { METHODS } from '../server/methods.ts'
import { aroundRequest } from '../server/middleware.ts'
import { observeRound } from '../server/observe.ts'
import type { AdmittedVisitor, AnswerPage, CheckedPageOptions, PageRequest, PageVisitor } from '../server/page.ts'
import { CALL_PARAMETER } from '../server/page.ts'
import { readRound } from '../server/params.ts'
import type { Reply } from '../server/reply.ts'
import { UNAVAILABLE } from '../server/reply.ts'
import type { ResolvedRequest, ResolvedTarget } from '../server/resolve.ts'
import { targetOf } from '../server/resolve.ts'
import { RequestSource, storedSource } from '../server/source.ts'
import type { Store } from '../store/store.ts'
import type { FoundCall } from './calls.ts'
import { AskedCalls, askedInPage } from './calls.ts'
import { plainToolsText } from './lists.ts'
import { pageText } from './page-text.ts'
import { PageKeys } from './page-key.ts'
import type { CallOrigin, TaskRecord } from './records.ts'
import { ownerOf, readId } from './records.ts'
import type { CallView, View } from './view.ts'
import { EXPIRED, STALE, startedText, UNKNOWN, waitingText } from './view.ts'
import { ResultWaits } from './waits.ts'

export class LinkRoom implements PageServer {
  readonly #app: AppServices
  readonly #options: CheckedPageOptions
  readonly #local: Pick<AnswerPage, 'openLocally'>
  readonly #calls: AskedCalls
  readonly #waits: ResultWaits
  readonly #keys: PageKeys

  constructor(
    app: AppServices,
    options: CheckedPageOptions,
    store: Store | undefined,
    local: Pick<AnswerPage, 'openLocally'>,
  ) {
    this.#app = app
    this.#options = options
    this.#local = local
    this.#calls = new AskedCalls(app, options.ttl, store)
    this.#waits = new ResultWaits(app, this.#calls, options.waitMs)
    this.#keys = new PageKeys(app.seal)
  }

  async serve(what: AppsRequest, served: ServedInApps): Promise<string | undefined> {
    if (what === 'tools') return plainToolsText(served)
    if (what === 'result') return this.#waits.result(served, (view) => this.#waiting(view, served.context))
    return this.#begin(served)
  }

  async open(request: PageRequest, origin: string): Promise<Reply | AdmittedVisitor> {
    try {
      return await this.#open(request, origin)
    } catch (error) {
      return this.#failed(error)
    }
  }

  async #open(request: PageRequest, origin: string): Promise<Reply | AdmittedVisitor> {
    const { method } = request
    const id = callIn(request.url)
    if (id === '') return plainReply(404, 'This link is not complete: it names no call.')
    if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') {
      return plainReply(405, 'Open the link in a browser.', { Allow: 'GET, HEAD, POST' })
    }
    if (method === 'POST') {
      // A browser says by which page a POST was sent. A page of another origin cannot change that.
      if (request.header('origin') !== origin) return problemReply(403, 'Answers must come from the page itself.')
      if (!/^application\/json\s*(;|$)/i.test(request.header('content-type') ?? '')) {
        return problemReply(415, 'Content-Type must be application/json.')
      }
    }
    const visitor = await this.#identify(request)
    if ('status' in visitor) return visitor
    const { principal } = visitor
    if (method === 'POST') return { kind: 'visitor', principal, id }
    const nonce = randomBytes(16).toString('base64')
    const text = await pageText(await this.#keys.mint(principal, id), nonce)
    const headers = { ...PRIVATE, 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy(nonce) }
    return { status: 200, headers, text: method === 'HEAD' ? '' : text }
  }

  async answer(visitor: AdmittedVisitor, body: string): Promise<Reply> {
    try {
      let sent: unknown
      try {
        sent = JSON.parse(body)
      } catch {
        return problemReply(400, 'The body is not JSON.')
      }
      if (!isObject(sent)) return problemReply(400, 'The body must be an object.')
      if (!(await this.#keys.opens(sent['key'], visitor.principal, visitor.id))) return viewReply(STALE, 403)
      return viewReply(await this.#heard(visitor, sent))
    } catch (error) {
      return this.#failed(error)
    }
  }

  /** The model calls a tool. What it sends as answers or as a state is not read. */
  async #begin(served: ServedInApps): Promise<string | undefined> {
    const { app, request, info, context } = served
    const problem = this.#problem(context)
    if (problem !== undefined) return this.#unasked(served, problem)
    const owner = ownerOf(context)
    const round = readRound(request, askedInPage(info, app), context, {})
    const begun = await this.#calls.begin(targetOf(request), round, owner)
    if (typeof begun !== 'object') return begun
    const { id } = begun.call
    const view = await this.#calls.view(begun)
    if (view.kind === 'done') return plainText(view.result, app.serverMeta)
    const { caller, overHttp = false } = context
    const source = storedSource(new RequestSource({ info, meta: request.meta, caller }, app.limits))
    await this.#calls.records.writeOrigin(id, begun.round, { source, owner, overHttp })
    const content = [{ type: 'text', text: startedText(view, await this.#link(id, context)) }]
    return plainText({ content }, app.serverMeta)
  }

  /** Nobody could answer, so the tool runs as it does for any client without forms. If it asks, the model reads what is missing. */
  async #unasked({ app, request, info, context }: ServedInApps, problem: string): Promise<string | undefined> {
    const target = targetOf(request)
    const readable: ResolvedTarget = {
      ...target,
      failureText: (error, host) =>
        error instanceof MissingCapability ? errorText(problem, host.serverMeta) : target.failureText(error, host),
    }
    return METHODS.get('tools/call')?.text(app, { ...request, target: readable }, info, context)
  }

  #problem({ caller, overHttp }: RequestContext): string | undefined {
    const { url, identify } = this.#options
    const advise = (missing: string, advice: string): string =>
      `This tool asks the user on a page of the server, but ${missing}.${this.#app.strict ? ` ${advice}` : ''}`
    if (identify !== undefined && caller === undefined) {
      return advise(
        'the server does not know who is calling',
        'Authenticate callers, so that `page.identify` can match.',
      )
    }
    const hasAddress = url !== undefined || (overHttp !== true && this.#local.openLocally !== undefined)
    return hasAddress ? undefined : advise('that page has no address', 'Pass `page.url` to rally().')
  }

  async #waiting(view: CallView, context: RequestContext): Promise<string> {
    return waitingText(view, await this.#link(view.id, context))
  }

  /** Over HTTP the page has an address of its own. Other hosts open one on this machine. */
  async #link(id: string, { overHttp }: RequestContext): Promise<string> {
    const { openLocally } = this.#local
    const base = overHttp === true || openLocally === undefined ? this.#options.url : await openLocally()
    return `${base}?${CALL_PARAMETER}=${id}`
  }

  async #identify(request: PageRequest): Promise<Reply | { readonly principal: string | undefined }> {
    const { identify } = this.#options
    if (identify === undefined) return { principal: undefined }
    const isPost = request.method === 'POST'
    const refuse = isPost ? problemReply : plainReply
    let visitor: PageVisitor
    let login: string | undefined
    try {
      visitor = await identify(request)
      if (visitor !== null && typeof visitor === 'object' && 'redirect' in visitor) {
        login = new URL(visitor.redirect, this.#options.url).href
      }
    } catch (error) {
      if (error instanceof RallyError && error.code === 'AUTHENTICATION_FAILED') return refuse(401, error.message)
      this.#app.logger.error('`page.identify` failed.', { error })
      return refuse(500, 'It could not be found out who you are.')
    }
    if (login !== undefined) {
      return isPost
        ? problemReply(401, 'You are logged out. Reload this page.')
        : plainReply(303, 'Log in first.', { Location: login })
    }
    const principal: unknown = typeof visitor === 'string' ? visitor : Reflect.get(visitor ?? {}, 'principal')
    if (typeof principal === 'string' && principal !== '') return { principal }
    return refuse(401, 'Log in as the user who was asked, then open the link again.')
  }

  /** What the page shows after what it sent: answers, or the question how its call stands. */
  async #heard(visitor: AdmittedVisitor, sent: Readonly<Record<string, unknown>>): Promise<View> {
    const origin = await this.#calls.records.origin(visitor.id)
    if (origin === undefined) return UNKNOWN
    const { source, overHttp } = origin
    const principal = source.caller?.principal
    if (this.#options.identify !== undefined && principal !== visitor.principal) return UNKNOWN
    const viewer = new RequestSource({ ...sourceOf(origin), overHttp }, this.#app.limits)
    const found = await this.#calls.find({ id: visitor.id, principal }, viewer)
    if (found === undefined) return UNKNOWN
    const { answers } = sent
    if (answers === undefined) return this.#calls.view(found)
    const { record } = found
    if (record.kind === 'task') await this.#answerTask(found, record, origin, answers)
    // Otherwise another window was first, and what came of it stands.
    else if (record.kind === 'asks' && sent['state'] === record.state) return this.#round(found, origin, answers)
    return this.#calls.view(found)
  }

  /** Middleware sees what a client sends that answers its tasks itself. */
  async #answerTask(found: FoundCall, { taskId }: TaskRecord, origin: CallOrigin, answers: unknown): Promise<void> {
    const app = this.#app
    const serve = async (): Promise<Result> => {
      await this.#calls.answerTask(found, answers)
      return {}
    }
    const request = { method: 'tasks/update', params: { taskId, inputResponses: answers } }
    const ends = { serve, write: (result: Result) => result }
    await (app.middleware.length === 0 ? serve() : aroundRequest(app, request, sourceOf(origin), ends))
  }

  async #round({ call, record }: FoundCall, origin: CallOrigin, answers: unknown): Promise<View> {
    const target = this.#app.registry.tools.get(record.tool)
    if (record.kind !== 'asks' || target === undefined) return UNKNOWN
    const { info, meta, caller } = sourceOf(origin)
    const params = { name: record.tool, arguments: record.arguments, _meta: meta }
    const request = requestOf(target, params, meta)
    // A user who closes the page has answered all the same, so nothing cancels the round.
    const context = { caller, overHttp: origin.overHttp }
    const retry = { requestState: record.state, inputResponses: answers }
    const round = readRound(request, askedInPage(info, this.#app), context, retry)
    const run = (): Promise<FoundCall | undefined> => this.#calls.answer(target, round, origin.owner)
    const answered = await this.#observed(request, origin, run)
    if (answered === undefined) return UNKNOWN
    await this.#calls.records.writeOrigin(call.id, answered.round, origin)
    return this.#calls.view(answered)
  }

  /** Observers see the round as they see one of a client. */
  async #observed(
    request: ResolvedRequest,
    { source }: CallOrigin,
    run: () => Promise<FoundCall | undefined>,
  ): Promise<FoundCall | undefined> {
    const { observers } = this.#app
    if (observers === undefined) return run()
    let answered: FoundCall | undefined
    const origin = { revision: source.client.revision, caller: source.caller, transport: 'tcp' } as const
    await observeRound(observers, request, origin, async () => {
      answered = await run()
      return answered && { resultType: answered.record.kind === 'asks' ? 'input_required' : 'complete' }
    })
    return answered
  }

  #failed(error: unknown): Reply {
    if (error instanceof InvalidState) return viewReply(EXPIRED)
    if (error instanceof Unavailable) {
      return {
        ...problemReply(UNAVAILABLE, error.message),
        headers: { ...JSON_HEADERS, 'Retry-After': error.retryAfter },
      }
    }
    if (isPublicProtocolError(error)) return problemReply(400, error.message)
    const { logger } = this.#app
    if (error instanceof RallyError && error.code === 'MAILBOX_FULL') {
      logger.warn('An answer was not taken: there is no room for its record.', { error })
      return problemReply(UNAVAILABLE, NO_ROOM)
    }
    logger.error('The page of questions failed.', { error })
    return problemReply(500, 'The server failed. Try again.')
  }
}

/** What a request said that a page continues. */
function sourceOf({
  source,
}: CallOrigin): Pick<ServedInApps, 'info'> & { caller: CallOrigin['source']['caller']; meta: Record<string, unknown> } {
  const { caller, client, meta } = source
  const { name, version, revision, extensions } = client
  const info = {
    revision,
    capabilities: readCapabilities({ ...client.capabilities }),
    logLevel: undefined,
    progressToken: undefined,
    clientInfo: { name, version },
    extensions,
  }
  return { info, caller, meta: { ...meta } }
}

function requestOf(
  target: ResolvedTarget,
  params: Record<string, unknown>,
  meta: Record<string, unknown>,
): ResolvedRequest {
  const members = { kind: 'request', id: 'page', method: 'tools/call', problem: undefined } as const
  const unused = { completion: undefined, own: undefined, scopes: target.scopes }
  return { ...members, ...unused, message: undefined, params, meta, target }
}

function callIn(url: string): string {
  return URL.canParse(url, ANY_BASE) ? readId(new URL(url, ANY_BASE).searchParams.get(CALL_PARAMETER)) : ''
}

const ANY_BASE = 'http://localhost'

/** Neither kept, nor named to other sites, nor shown inside of them. */
const PRIVATE = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
}
const JSON_HEADERS = { ...PRIVATE, 'Content-Type': 'application/json' }

function policy(nonce: string): string {
  const only = `'nonce-${nonce}'`
  return `default-src 'none'; script-src ${only}; style-src ${only}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}

function plainReply(status: number, text: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, text, headers: { ...PRIVATE, 'Content-Type': 'text/plain; charset=utf-8', ...headers } }
}

/** What the page shows beside its button. */
function problemReply(status: number, message: string): Reply {
  return { status, text: JSON.stringify({ message }), headers: JSON_HEADERS }
}

function viewReply(view: View, status = 200): Reply {
  return { status, text: JSON.stringify(view), headers: JSON_HEADERS }
}
