// Questions in a page of the client's host (MCP Apps): which clients are asked that way, and which of their requests are served in
// another way. The room `apps/` serves those. It is loaded with the first of them.
//
// 1. A client is asked in a page if it declares the extension and no forms of its own, unless the option `when` says otherwise.
// 2. For every other client nothing changes: not a byte of a list, and no tool more.
// 3. The model's call never brings answers or a state. Only the page does, through `rally_answer`.
import type { ClientInfo } from '../flow/caller.ts'
import { MissingCapability } from '../flow/errors.ts'
import { ANSWER_TOOL, APPS_EXTENSION, PAGE_TYPE, PAGE_URI, RESULT_TOOL } from '../protocol/apps.ts'
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { ServerCapabilities } from '../protocol/messages.ts'
import { shown } from '../protocol/text.ts'
import type { Store } from '../store/store.ts'
import { hasCapability } from './capabilities.ts'
import { errorText } from './content.ts'
import type { Apps, AppServices, AppsMethod, RequestContext } from './context.ts'
import { METHODS } from './methods.ts'
import type { AnsweredTool } from './registry.ts'
import type { RequestInfo } from './request.ts'
import type { ResolvedRequest } from './resolve.ts'
import { RequestSource } from './source.ts'
import type { RegisteredTool } from './tool.ts'

export interface AppsOptions {
  /** How long a call of `rally_result` waits for the user, in milliseconds. Default 25 000. */
  waitMs?: number
  /** How long the user may take for one round, and how long its outcome is kept, in seconds. `maxAge` limits it too. Default 86 400. */
  ttl?: number
  /**
   * Whether a client is asked in a page: `true` or `false` for hosts that declare the wrong thing, `undefined` for all others.
   * Default: as the client declares.
   */
  when?: (client: ClientInfo) => boolean | undefined
}

export type CheckedAppsOptions = Required<Omit<AppsOptions, 'when'>> & Pick<AppsOptions, 'when'>

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

export type LoadApps = (app: AppServices, options: CheckedAppsOptions, store: Store | undefined) => Promise<AppsServer>

/** Finds the requests that are served in another way, and has the room serve them. */
export class AppsSwitch implements Apps {
  readonly #app: AppServices
  readonly #when: AppsOptions['when']
  readonly #methods: Readonly<Record<AppsRequest, AppsMethod>>
  readonly #load: () => Promise<AppsServer>
  #room: Promise<AppsServer> | undefined

  constructor(app: AppServices, options: CheckedAppsOptions, store: Store | undefined, load: LoadApps) {
    this.#app = app
    this.#when = options.when
    this.#load = () => load(app, options, store)
    this.#methods = {
      tools: this.#method('tools'),
      resources: this.#method('resources'),
      page: this.#method('page'),
      begin: { ...this.#method('begin'), isRound: true },
      answer: { ...this.#method('answer'), isRound: true },
      result: this.#method('result'),
    }
    app.registry.findAnswered = (params) => this.#answeredTool(params)
    if (store === undefined) {
      app.logger.warn(
        '`apps` without a `store`: answers and results of pages stay in the memory of this process. Run one instance, or pass a store to rally({ store }).',
      )
    }
  }

  methodOf(request: ResolvedRequest, info: RequestInfo): AppsMethod | undefined {
    const { method } = request
    switch (method) {
      case 'tools/call':
        return this.#asks(info) ? this.#callOf(request) : undefined
      case 'tools/list':
        return this.#asks(info) ? this.#methods.tools : undefined
      case 'resources/list':
        return this.#asks(info) ? this.#methods.resources : undefined
      case 'resources/read':
        return request.params?.['uri'] === PAGE_URI && this.#asks(info) ? this.#methods.page : undefined
      default:
        return undefined
    }
  }

  capabilities(info: RequestInfo): ServerCapabilities | undefined {
    return this.#asks(info)
      ? { resources: {}, extensions: { [APPS_EXTENSION]: { mimeTypes: [PAGE_TYPE] } } }
      : undefined
  }

  unlinkedText({ params }: ResolvedRequest, info: RequestInfo): string | undefined {
    if (!this.#asks(info)) return undefined
    const tool = this.#toolOf(params?.['name'])
    if (tool === undefined || tool.apps) return undefined
    const what = `Tool "${tool.target}" asks the user, but has no page for its questions.`
    return this.#app.strict
      ? `${what} Declare its questions in \`asks\`, or add \`apps: true\` to its options.`
      : `${what} It cannot be used in this app.`
  }

  #callOf({ params = {} }: ResolvedRequest): AppsMethod | undefined {
    const { name, task } = params
    if (name === ANSWER_TOOL) return this.#methods.answer
    if (name === RESULT_TOOL) return this.#methods.result
    // A client of an older revision that asks for a task follows it by itself.
    if (task !== undefined) return undefined
    const tool = this.#toolOf(name)
    if (tool === undefined) return undefined
    return tool.apps ? this.#methods.begin : this.#unlinked
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

  #method(what: AppsRequest): AppsMethod {
    return {
      text: async (app, request, info, context) => {
        this.#room ??= this.#load()
        return (await this.#room).serve(what, { app, request, info, context })
      },
    }
  }

  #asks(info: RequestInfo): boolean {
    const declared = showsPages(info.extensions) && !hasCapability(info.capabilities, 'elicitation.form')
    if (this.#when === undefined) return declared
    const { limits, logger } = this.#app
    try {
      return this.#when(new RequestSource({ info, meta: undefined, caller: undefined }, limits).client) ?? declared
    } catch (error) {
      logger.error('`apps.when` threw. The client is asked as it declares.', { error })
      return declared
    }
  }

  #answeredTool({ name, arguments: given }: Readonly<Record<string, unknown>>): AnsweredTool | undefined {
    if (name !== ANSWER_TOOL || !isObject(given)) return undefined
    const tool = this.#toolOf(given['tool'])
    return tool && { kind: 'answered', tool, scopes: tool.scopes, visible: tool.visible }
  }

  #toolOf(name: unknown): RegisteredTool | undefined {
    return typeof name === 'string' ? this.#app.registry.tools.get(name) : undefined
  }
}

/** Throws if the name is one that Rally needs for itself. */
export function checkToolName(name: string): void {
  if (name !== ANSWER_TOOL && name !== RESULT_TOOL) return
  throw new RallyError('NAME_TAKEN', `The tool "${name}" is Rally's own, for the option \`apps\`. Use another name.`)
}

/** Checks the option when the app is built. Returns `undefined` if it is off. */
export function readAppsOptions(given: unknown): CheckedAppsOptions | undefined {
  if (given === false) return undefined
  const options: unknown = given === true ? {} : given
  if (!isObject(options)) {
    throw new RallyError('OPTION_INVALID', `\`apps\` must be true, false or an object of options, got ${shown(given)}.`)
  }
  const { waitMs = 25_000, ttl = 86_400, when }: AppsOptions = options
  if (!Number.isSafeInteger(waitMs) || waitMs < 0) {
    throw new RallyError('OPTION_INVALID', `\`apps.waitMs\` must be a whole number of 0 or more, got ${shown(waitMs)}.`)
  }
  if (!(ttl > 0 && Number.isSafeInteger(Math.round(ttl * 1000)))) {
    throw new RallyError('OPTION_INVALID', `\`apps.ttl\` must be a number of seconds above 0, got ${shown(ttl)}.`)
  }
  if (when !== undefined && typeof when !== 'function') {
    throw new RallyError('OPTION_INVALID', `\`apps.when\` must be a function of the client, got ${shown(when)}.`)
  }
  return { waitMs, ttl, ...(when && { when }) }
}

function showsPages(extensions: unknown): boolean {
  const ui = isObject(extensions) ? extensions[APPS_EXTENSION] : undefined
  if (!isObject(ui)) return false
  const { mimeTypes } = ui
  return !Array.isArray(mimeTypes) || mimeTypes.includes(PAGE_TYPE)
}
