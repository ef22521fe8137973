// Serves clients that are asked in a page of their host (MCP Apps). The page carries the sealed state, as a client of 2026-07-28
// would, and answers through a tool that hosts keep from the model.
//
// Answers are taken from the page alone: a call needs the key that is in the page. The model's call brings no state.
import { PAGE_TYPE, PAGE_URI } from '../protocol/apps.ts'
import { isObject } from '../protocol/json.ts'
import type { Result } from '../protocol/revisions/rounds.ts'
import { InvalidState } from '../seal/errors.ts'
import type { AppsRequest, AppsServer, ServedInApps } from '../server/apps.ts'
import { isRound } from '../server/apps.ts'
import type { CheckedAppsOptions } from '../server/apps-options.ts'
import { plainText } from '../server/content.ts'
import type { AppServices } from '../server/context.ts'
import { aroundRequest } from '../server/middleware.ts'
import { readRound } from '../server/params.ts'
import { targetOf } from '../server/resolve.ts'
import type { SourceRequest } from '../server/source.ts'
import { RequestSource } from '../server/source.ts'
import type { Store } from '../store/store.ts'
import { AskedCalls, askedInPage } from './calls.ts'
import { resourcesText, toolsText } from './lists.ts'
import { PageKeys } from './page-key.ts'
import { pageText } from './page-text.ts'
import { ownerOf, readId } from './records.ts'
import type { View } from './view.ts'
import { EXPIRED, META_VIEW, STALE, startedText, UNKNOWN, waitingText } from './view.ts'
import { ResultWaits } from './waits.ts'

export class AppsRoom implements AppsServer {
  readonly #calls: AskedCalls
  readonly #waits: ResultWaits
  readonly #keys: PageKeys

  constructor(app: AppServices, { waitMs, ttl }: CheckedAppsOptions, store: Store | undefined) {
    this.#calls = new AskedCalls(app, ttl, store)
    this.#waits = new ResultWaits(app, this.#calls, waitMs)
    this.#keys = new PageKeys(app.seal)
  }

  serve(what: AppsRequest, served: ServedInApps): Promise<string | undefined> {
    return this[what](served)
  }

  async tools(served: ServedInApps): Promise<string> {
    return toolsText(served)
  }

  async resources(served: ServedInApps): Promise<string> {
    return resourcesText(served)
  }

  async page({ app, context }: ServedInApps): Promise<string> {
    const text = await pageText(await this.#keys.mint(context.caller?.principal))
    const contents = [{ uri: PAGE_URI, mimeType: PAGE_TYPE, text, _meta: { ui: { prefersBorder: true } } }]
    const result = plainText({ contents }, app.serverMeta)
    return `${result.slice(0, -1)},${app.registry.hintsText(false)}}`
  }

  /** The model calls a tool. What it sends as answers or as a state is not read. */
  async begin({ app, request, info, context }: ServedInApps): Promise<string | undefined> {
    const round = readRound(request, askedInPage(info, app), context, NO_RETRY)
    const begun = await this.#calls.begin(targetOf(request), round, ownerOf(context))
    if (typeof begun !== 'object') return begun
    const view = await this.#calls.view(begun)
    if (view.kind === 'done') return plainText(view.result, app.serverMeta)
    const content = [{ type: 'text', text: startedText(view) }]
    return plainText({ content, _meta: { [META_VIEW]: view } }, app.serverMeta)
  }

  /** The page answers, or asks how its call stands. A round runs through the middleware as any round does; the rest does here. */
  async answer(served: ServedInApps): Promise<string | undefined> {
    const { app, request, info, context } = served
    const { arguments: given } = request.params ?? {}
    const { key, ...sent } = isObject(given) ? given : {}
    const { caller, overHttp } = context
    const isOurs = await this.#keys.opens(key, caller?.principal)
    if (isOurs && isRound(sent)) return this.#answerRound(served, sent)
    const from = { info, meta: request.meta, caller, overHttp }
    const serve = async (): Promise<string> => tell(app, isOurs ? await this.#answerOther(served, sent, from) : STALE)
    if (app.middleware.length === 0) return serve()
    // The key stays secret: anyone who has it can answer for the user.
    const params = { ...request.params, arguments: sent }
    const write = (result: Result): string => plainText(result, app.serverMeta)
    return aroundRequest<string>(app, { method: request.method, params }, from, { serve, write })
  }

  /** The model waits for the result. */
  result(served: ServedInApps): Promise<string | undefined> {
    return this.#waits.result(served, waitingText)
  }

  /** An answer to a task, or no answer. */
  async #answerOther({ app }: ServedInApps, sent: Record<string, unknown>, from: SourceRequest): Promise<View> {
    const call = { id: readId(sent['id']), principal: from.caller?.principal }
    const found = await this.#calls.find(call, new RequestSource(from, app.limits))
    if (found === undefined) return UNKNOWN
    if (sent['answers'] !== undefined) await this.#calls.answerTask(found, sent['answers'])
    return this.#calls.view(found)
  }

  async #answerRound(served: ServedInApps, sent: Record<string, unknown>): Promise<string | undefined> {
    const { app, request, info, context } = served
    // Found with the request, so that scopes and visibility of the tool were checked with it.
    const target = request.own?.kind === 'answered' ? request.own.tool : undefined
    if (target === undefined) return tell(app, EXPIRED)
    const inner = { ...request, params: { name: target.target, arguments: sent['arguments'] ?? {} }, target }
    const retry = { requestState: sent['state'], inputResponses: sent['answers'] }
    const round = readRound(inner, askedInPage(info, app), context, retry)
    try {
      const answered = await this.#calls.answer(target, round, ownerOf(context))
      return answered && tell(app, await this.#calls.view(answered))
    } catch (error) {
      if (error instanceof InvalidState) return tell(app, EXPIRED)
      throw error
    }
  }
}

const NO_RETRY = {}

/** Both places, because hosts lose one or the other. The model gets no results of the page's tool. */
function tell({ serverMeta }: AppServices, view: View): string {
  const isProblem = view.kind === 'problem'
  const content = [{ type: 'text', text: isProblem ? view.message : 'See the form.' }]
  const members = { content, structuredContent: { [META_VIEW]: view }, ...(isProblem && { isError: true }) }
  return plainText({ ...members, _meta: { [META_VIEW]: view } }, serverMeta)
}
