// Questions in a page, for clients without forms: which clients are asked that way, and which of their requests are served in another
// way. The room `apps/` serves those. It is loaded with the first of them.
//
// 1. A client with forms is asked by itself. One that shows MCP Apps is asked in its host, with the option `apps`. All others are asked
//    on a page by a link, with the option `page`. The option `when` of each may say otherwise.
// 2. For every other client nothing changes: not a byte of a list, and no tool more.
// 3. The model's call never brings answers or a state. Only the page does.
import { MissingCapability } from '../flow/errors.ts'
import { callSafely } from '../protocol/call-safely.ts'
import { ANSWER_TOOL, APPS_EXTENSION, PAGE_TYPE, PAGE_URI, RESULT_TOOL } from '../protocol/apps.ts'
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { ServerCapabilities } from '../protocol/messages.ts'
import type { Store } from '../store/store.ts'
import type { AppsOptions, CheckedAppsOptions } from './apps-options.ts'
import { hasCapability } from './capabilities.ts'
import { errorText } from './content.ts'
import type { Apps, AppServices, AppsMethod, RequestContext } from './context.ts'
import { METHODS } from './methods.ts'
import type { AnswerPage, CheckedPageOptions } from './page.ts'
import { CALL_PARAMETER } from './page.ts'
import type { AnsweredTool } from './registry.ts'
import type { RequestInfo } from './request.ts'
import type { ResolvedRequest } from './resolve.ts'
import { RequestSource } from './source.ts'
import type { RegisteredTool } from './tool.ts'

/** What is served in another way. */
export type AppsRequest = 'tools' | 'resources' | 'page' | 'begin' | 'answer' | 'result'

/** The room `apps/`, as the server knows it. */
export interface AppsServer {
  /** The text of the result in 2026-07-28; `undefined` when the client has cancelled. Throws what to answer instead. */
  serve(what: AppsRequest, served: ServedInApps): Promise<string | undefined>
}

/** One request to the room. */
export interface ServedInApps {
  readonly app: AppServices
  readonly request: ResolvedRequest
  readonly info: RequestInfo
  readonly context: RequestContext
}

/** The page by a link, as the server knows it. `app.page` is what hosts know of it. */
export interface PageServer extends AppsServer, Pick<AnswerPage, 'open' | 'answer'> {}

/** The options that are on, and the rooms that serve them. */
export interface AskingParts {
  readonly apps: CheckedAppsOptions | undefined
  readonly page: CheckedPageOptions | undefined
  readonly loadApps: (app: AppServices, options: CheckedAppsOptions, store: Store | undefined) => Promise<AppsServer>
  readonly loadPage: (
    app: AppServices,
    options: CheckedPageOptions,
    store: Store | undefined,
    page: Pick<AnswerPage, 'openLocally'>,
  ) => Promise<PageServer>
}

/** How a client is asked that has no forms. */
type Way = 'apps' | 'page'

/** Finds the requests that are served in another way, and has the rooms serve them. */
export class AppsSwitch implements Apps {
  readonly page: AnswerPage | undefined
  readonly #app: AppServices
  readonly #apps: CheckedAppsOptions | undefined
  readonly #page: CheckedPageOptions | undefined
  readonly #methods: Readonly<Record<Way, Readonly<Record<AppsRequest, AppsMethod>>>>

  constructor(app: AppServices, { apps, page, loadApps, loadPage }: AskingParts, store: Store | undefined) {
    this.#app = app
    this.#apps = apps
    this.#page = page
    const room = once(() => (apps === undefined ? notThere() : loadApps(app, apps, store)))
    const pageRoom = once(() => (page === undefined ? notThere() : loadPage(app, page, store, linked)))
    const linked = answerPage(page?.url, pageRoom)
    this.page = page && linked
    this.#methods = { apps: methodsOf(room), page: methodsOf(pageRoom) }
    if (apps !== undefined) app.registry.findAnswered = (params) => this.#answeredTool(params)
    if (store === undefined) {
      app.logger.warn(
        `\`${apps === undefined ? 'page' : 'apps'}\` without a \`store\`: answers and results of pages stay in the memory of this process. Run one instance, or pass a store to rally({ store }).`,
      )
    }
  }

  methodOf(request: ResolvedRequest, info: RequestInfo): AppsMethod | undefined {
    switch (request.method) {
      case 'tools/call': {
        const way = this.#wayOf(info)
        return way && this.#callOf(request, way)
      }
      case 'tools/list': {
        const way = this.#wayOf(info)
        return way && this.#methods[way].tools
      }
      case 'resources/list':
        return this.#wayOf(info) === 'apps' ? this.#methods.apps.resources : undefined
      case 'resources/read':
        return request.params?.['uri'] === PAGE_URI && this.#wayOf(info) === 'apps'
          ? this.#methods.apps.page
          : undefined
      default:
        return undefined
    }
  }

  capabilities(info: RequestInfo): ServerCapabilities | undefined {
    return this.#wayOf(info) === 'apps'
      ? { resources: {}, extensions: { [APPS_EXTENSION]: { mimeTypes: [PAGE_TYPE] } } }
      : undefined
  }

  unlinkedText({ params }: ResolvedRequest, info: RequestInfo): string | undefined {
    const way = this.#wayOf(info)
    const tool = this.#toolOf(params?.['name'])
    if (way === undefined || tool === undefined || hasPage(tool, way)) return undefined
    const what = `Tool "${tool.target}" asks the user, but has no page for its questions.`
    return this.#app.strict
      ? `${what} Declare its questions in \`asks\`, or add \`apps: true\` to its options.`
      : `${what} It cannot be used in this app.`
  }

  #callOf({ params = {} }: ResolvedRequest, way: Way): AppsMethod | undefined {
    const { name, task } = params
    if (name === ANSWER_TOOL && way === 'apps') return this.#methods.apps.answer
    if (name === RESULT_TOOL) return this.#methods[way].result
    // A client of an older revision that asks for a task follows it by itself.
    if (task !== undefined) return undefined
    const tool = this.#toolOf(name)
    if (tool === undefined) return undefined
    return hasPage(tool, way) ? this.#methods[way].begin : this.#unlinked
  }

  /** A tool without a page runs as it does for any client. If it asks, the model reads what is missing. */
  readonly #unlinked: AppsMethod = {
    isRound: true,
    text: async (app, request, info, context) => {
      try {
        return await METHODS.get('tools/call')?.text(app, request, info, context)
      } catch (error) {
        if (!(error instanceof MissingCapability)) throw error
        return errorText(this.unlinkedText(request, info) ?? error.message, app.serverMeta)
      }
    },
  }

  #wayOf(info: RequestInfo): Way | undefined {
    const hasForms = hasCapability(info.capabilities, 'elicitation.form')
    if (this.#apps !== undefined) {
      const { when } = this.#apps
      const declared = !hasForms && showsPages(info.extensions)
      if (when === undefined ? declared : this.#decide('apps', when, info, declared)) return 'apps'
    }
    if (this.#page === undefined) return undefined
    const { when } = this.#page
    return (when === undefined ? !hasForms : this.#decide('page', when, info, !hasForms)) ? 'page' : undefined
  }

  #decide(way: Way, when: NonNullable<AppsOptions['when']>, info: RequestInfo, declared: boolean): boolean {
    const { limits, logger } = this.#app
    const decided = callSafely(
      () => when(new RequestSource({ info, meta: undefined, caller: undefined }, limits).client),
      (error) => logger.error(`\`${way}.when\` threw. The client is asked as it declares.`, { error }),
    )
    // A promise is no answer.
    return typeof decided === 'boolean' ? decided : declared
  }

  #answeredTool({ name, arguments: given }: Readonly<Record<string, unknown>>): AnsweredTool | undefined {
    if (name !== ANSWER_TOOL || !isObject(given) || !isRound(given)) return undefined
    const tool = this.#toolOf(given['tool'])
    return tool && { kind: 'answered', tool, scopes: tool.scopes, visible: tool.visible }
  }

  #toolOf(name: unknown): RegisteredTool | undefined {
    return typeof name === 'string' ? this.#app.registry.tools.get(name) : undefined
  }
}

/**
 * Whether a tool can be asked for in a page. In an MCP App its entry in the list must link the page. By a link it need not, but a call
 * that waits has no structured content, and clients hold every result to an `outputSchema` that the list shows.
 */
export function hasPage({ apps, listing }: RegisteredTool, way: 'apps' | 'page'): boolean {
  return apps || (way === 'page' && listing.outputSchema === undefined)
}

/** True if the page answers a round. An answer to a task brings no state, and needs nothing but to own the task. */
export function isRound({ answers, state }: Readonly<Record<string, unknown>>): boolean {
  return answers !== undefined && state !== undefined
}

function methodsOf(room: () => Promise<AppsServer>): Readonly<Record<AppsRequest, AppsMethod>> {
  const method = (what: AppsRequest): AppsMethod => ({
    text: async (app, request, info, context) => {
      try {
        return await (await room()).serve(what, { app, request, info, context })
      } catch (error) {
        if (!(error instanceof RallyError) || error.code !== 'MAILBOX_FULL') throw error
        app.logger.warn('A question was not asked: there is no room for its record.', { error })
        return errorText(NO_ROOM, app.serverMeta)
      }
    },
  })
  return {
    tools: method('tools'),
    resources: method('resources'),
    page: method('page'),
    begin: { ...method('begin'), isRound: true },
    // If it is no round, the room runs the middleware around it.
    answer: { ...method('answer'), isRound: true },
    result: method('result'),
  }
}

/** What the model and the user read in place of MAILBOX_FULL. */
export const NO_ROOM =
  'The server cannot keep this call: too many questions wait for this user already, or its result is too large. Answer or decline what waits, then try again later.'

function answerPage(url: string | undefined, room: () => Promise<PageServer>): AnswerPage {
  const path = url === undefined ? undefined : new URL(url).pathname
  return {
    url,
    // The first test is for speed: no other request has the parameter.
    takes: (given) => {
      if (!given.includes(`${CALL_PARAMETER}=`) || !URL.canParse(given, ANY_BASE)) return false
      const { pathname, searchParams } = new URL(given, ANY_BASE)
      return pathname === path && searchParams.has(CALL_PARAMETER)
    },
    open: async (request, origin) => (await room()).open(request, origin),
    answer: async (visitor, body) => (await room()).answer(visitor, body),
    openLocally: undefined,
  }
}

const ANY_BASE = 'http://localhost'

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}

function notThere(): never {
  throw new RallyError('OPTION_INVALID', 'This way to ask is off.')
}

/** Throws if the name is one that Rally needs for itself. */
export function checkToolName(name: string): void {
  if (name !== ANSWER_TOOL && name !== RESULT_TOOL) return
  throw new RallyError(
    'NAME_TAKEN',
    `The tool "${name}" is Rally's own, for the options \`apps\` and \`page\`. Use another name.`,
  )
}

function showsPages(extensions: unknown): boolean {
  const ui = isObject(extensions) ? extensions[APPS_EXTENSION] : undefined
  if (!isObject(ui)) return false
  const { mimeTypes } = ui
  return !Array.isArray(mimeTypes) || mimeTypes.includes(PAGE_TYPE)
}
