// `rally()`: puts an app together with sessions for 2025-era clients, tasks and a fetch handler.
import { checkAuthenticate } from './auth/authenticate.ts'
import type { FetchHandler } from './hosts/fetch.ts'
import type { HttpOptions } from './hosts/http.ts'
import { atCaller, RallyError } from './protocol/errors.ts'
import { isObject } from './protocol/json.ts'
import type { InputResponse } from './protocol/messages.ts'
import { checkFunctions, checkGroups, isAboveZero, wrongOption } from './protocol/options.ts'
import { shown } from './protocol/text.ts'
import type { OptInRevision } from './protocol/revisions/rounds.ts'
import { OPT_IN } from './protocol/revisions/rounds.ts'
import type { AppOptions } from './server/options.ts'
import { App } from './server/app.ts'
import type { AskingParts } from './server/apps.ts'
import { AppsSwitch } from './server/apps.ts'
import type { AppsOptions } from './server/apps-options.ts'
import { readAppsOptions } from './server/apps-options.ts'
import { withDevelopment } from './server/development.ts'
import type { LegacyOptions } from './server/legacy.ts'
import { lazily } from './server/legacy.ts'
import type { PageOptions } from './server/page.ts'
import { readPageOptions } from './server/page.ts'
import type { SignalOutcome, TasksOptions } from './server/tasks.ts'
import { readTasksOptions, TaskEngine } from './tasks/engine.ts'
import type {
  TaskDetails,
  TaskGetOptions,
  TaskList,
  TaskListOptions,
  TaskOperations,
  TaskPruneOptions,
  TaskRetryOptions,
  TaskSummary,
} from './tasks/operations.ts'
import type { Store } from './store/store.ts'

/**
 * Creates an app. Register tools, prompts and resources on it, then serve it.
 *
 * ```ts
 * const app = rally({ name: 'deployer', version: '1.0.0' })
 * app.tool('deploy', { input: z.object({ env: z.string() }) }, async ({ env }, io) => {
 *   return (await io.confirm('sure', `Deploy to ${env}?`)) ? 'Deployed.' : 'Not deployed.'
 * })
 * ```
 */
export function rally(options: RallyOptions): Rally {
  return atCaller(rally, () => new Rally(options))
}

/** Options of `rally()`. Only `name` and `version` are required. */
export interface RallyOptions extends AppOptions {
  /** Options for HTTP requests through `app.fetch`. `serve()` and `nodeHandler()` take the same options. Default: none. */
  http?: HttpOptions
  /** Options for 2025-era clients, which the same handlers serve. `false` refuses them. Default: `{}`. */
  legacy?: false | LegacyOptions
  /** Stores tasks, and the events that instances share. See mcp-rally/sqlite and mcp-rally/postgres. Default: no tasks. */
  store?: Store
  /**
   * Asks in a page of the client's host (MCP Apps), where a client has no forms of its own. `true` is `{}`. Default: such a client
   * cannot be asked.
   */
  apps?: boolean | AppsOptions
  /**
   * Asks on a page of this server, which the user opens by a link, where a client has neither forms nor MCP Apps. Default: such a
   * client cannot be asked.
   */
  page?: PageOptions
  /** Limits and times of tasks. Default: `{}`. */
  tasks?: TasksOptions
  /**
   * Drafts of the protocol to support beside its releases: '2026-06-XX' and '2026-02-03-draft', the first draft of rounds.
   * A draft is used only with clients that ask for it by name. Default: none.
   */
  revisions?: readonly OptInRevision[]
}

/** An app, as `rally()` returns it. */
export class Rally extends App {
  /** Serves one HTTP request. Pass it to Hono, Bun, Deno or Workers. */
  readonly fetch: FetchHandler
  /** What operators do with the tasks of the app: list, look into, cancel, answer, retry and delete them. Needs a store. */
  readonly tasks: RallyTasks

  constructor(given: RallyOptions) {
    checkGiven(given)
    const options = withDevelopment(given)
    checkGroups({ tasks: options.tasks, http: options.http })
    checkAuthenticate(options.http?.authenticate)
    const { legacy = {}, revisions: optedIn = [], store, tasks = {}, apps = false, page } = options
    if (legacy !== false) checkLegacy(legacy)
    checkRevisions(optedIn, legacy !== false)
    const taskOptions = readTasksOptions(tasks)
    const asking: AskingParts = { apps: readAppsOptions(apps), page: readPageOptions(page), loadApps, loadPage }
    const asksInPages = asking.apps !== undefined || asking.page !== undefined
    checkStore(store)
    const shared = store && { mailbox: store.mailbox }
    let engine: TaskEngine | undefined
    super(options, {
      legacy:
        legacy === false
          ? undefined
          : (host) =>
              lazily(async () => {
                const { LegacyServer } = await import('./legacy/server.ts')
                return new LegacyServer(host, { ...shared, ...legacy }, optedIn)
              }),
      tasks: store && ((host) => (engine = new TaskEngine(host, store.tasks, taskOptions))),
      apps: asksInPages ? (host) => new AppsSwitch(host, asking, store) : undefined,
    })
    this.tasks = new RallyTasks(engine)
    // Loaded with the first request, because an app behind another host never needs it.
    let handler: Promise<FetchHandler> | undefined
    this.fetch = async (request) => {
      handler ??= import('./hosts/fetch.ts').then(({ fetchHandler }) => fetchHandler(this, options.http))
      return (await handler)(request)
    }
  }
}

/** What operators do with the tasks of all callers. No client can reach it through MCP: see docs/operations.md. */
export class RallyTasks {
  readonly #engine: TaskEngine | undefined
  #loaded: Promise<TaskOperations> | undefined

  constructor(engine: TaskEngine | undefined) {
    this.#engine = engine
  }

  /** Lists tasks, the newest first, page by page. */
  async list(options?: TaskListOptions): Promise<TaskList> {
    return (await this.#operations()).list(options)
  }

  /** One task: its arguments, its questions or result, and its timeline. */
  async get(id: string, options?: TaskGetOptions): Promise<TaskDetails> {
    return (await this.#operations()).get(id, options)
  }

  /** Cancels a task. */
  async cancel(id: string): Promise<void> {
    return (await this.#operations()).cancel(id)
  }

  /**
   * Answers questions of a task in place of its client.
   *
   * @example
   * await app.tasks.answer(id, { approve: { action: 'accept', content: { confirm: true } } })
   */
  async answer(id: string, answers: Readonly<Record<string, InputResponse>>): Promise<void> {
    return (await this.#operations()).answer(id, answers)
  }

  /**
   * Sends an event to a task by the key of its `io.event()`, without the token. Returns `repeated` if one has come before.
   *
   * @example
   * await app.tasks.signal(id, 'paid', { amount: 40 })
   */
  async signal(id: string, key: string, value: unknown = null): Promise<SignalOutcome> {
    return (await this.#operations()).signal(id, key, value)
  }

  /**
   * Makes a new task of one that ended in error or was given up. It continues after what was recorded, and its steps have the same
   * idempotency keys. `from` is the key of the first thing to do again.
   *
   * @example
   * const { id } = await app.tasks.retry(failed.id, { from: 'charge' })
   */
  async retry(id: string, options?: TaskRetryOptions): Promise<TaskSummary> {
    return (await this.#operations()).retry(id, options)
  }

  /** Deletes tasks that have ended. Returns how many. */
  async prune(options: TaskPruneOptions): Promise<number> {
    return (await this.#operations()).prune(options)
  }

  #operations(): Promise<TaskOperations> {
    if (this.#engine === undefined)
      throw new RallyError('STORE_REQUIRED', '`app.tasks` needs a store. Pass one to rally({ store }).')
    return (this.#loaded ??= this.#engine.operations())
  }
}

const loadApps: AskingParts['loadApps'] = async (...given) => {
  const { AppsRoom } = await import('./apps/room.ts')
  return new AppsRoom(...given)
}

const loadPage: AskingParts['loadPage'] = async (...given) => {
  const { LinkRoom } = await import('./apps/link.ts')
  return new LinkRoom(...given)
}

function checkGiven(options: unknown): void {
  if (isObject(options)) return
  throw new RallyError(
    'OPTION_INVALID',
    `rally() needs options, got ${shown(options)}. Write rally({ name, version }).`,
  )
}

function checkLegacy(legacy: LegacyOptions): void {
  if (!isObject(legacy)) throw wrongOption('legacy', 'false or an object of options', legacy)
  const { mailbox, ...times } = legacy
  checkFunctions('legacy.mailbox', mailbox, 'the mailbox of a store, or one', ['leave', 'after', 'watch'])
  for (const [name, ms] of Object.entries(times)) {
    if (!isAboveZero(ms)) throw wrongOption(`legacy.${name}`, 'a number of milliseconds above 0', ms)
  }
}

function checkStore(store: Store | undefined): void {
  if (store === undefined || (isObject(store) && isObject(store.tasks) && isObject(store.mailbox))) return
  throw new RallyError(
    'OPTION_INVALID',
    "`store` must be a Store. Create one with sqlite('tasks.db') of mcp-rally/sqlite, postgres(url) of mcp-rally/postgres, or new MemoryStore().",
  )
}

function checkRevisions(revisions: readonly string[], hasSessions: boolean): void {
  const known: readonly string[] = OPT_IN
  const wrong = Array.isArray(revisions) ? revisions.find((name) => !known.includes(name)) : revisions
  if (wrong !== undefined) {
    const names = known.map((name) => `'${name}'`).join(' and ')
    throw new RallyError('OPTION_INVALID', `\`revisions\` must be an array of ${names}, got ${shown(wrong)}.`)
  }
  if (revisions.length > 0 && !hasSessions) {
    throw new RallyError(
      'OPTION_INVALID',
      `\`revisions\`: ${revisions.join(', ')} needs sessions, but \`legacy\` is false. Remove one of the two options.`,
    )
  }
}
