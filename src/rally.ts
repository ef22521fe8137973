// `rally()`: puts an app together with sessions for 2025-era clients, tasks and a fetch handler.
import type { FetchHandler } from './hosts/fetch.ts'
import type { HttpOptions } from './hosts/http.ts'
import { atCaller, RallyError } from './protocol/errors.ts'
import { isObject } from './protocol/json.ts'
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
import type { TasksOptions } from './server/tasks.ts'
import { readTasksOptions, TaskEngine } from './tasks/engine.ts'
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

  constructor(given: RallyOptions) {
    const options = withDevelopment(given)
    const { legacy = {}, revisions: optedIn = [], store, tasks = {}, apps = false, page } = options
    if (legacy !== false) checkLegacy(legacy)
    checkRevisions(optedIn, legacy !== false)
    const taskOptions = readTasksOptions(tasks)
    const asking: AskingParts = { apps: readAppsOptions(apps), page: readPageOptions(page), loadApps, loadPage }
    const asksInPages = asking.apps !== undefined || asking.page !== undefined
    checkStore(store)
    const shared = store && { mailbox: store.mailbox }
    super(options, {
      legacy:
        legacy === false
          ? undefined
          : (host) =>
              lazily(async () => {
                const { LegacyServer } = await import('./legacy/server.ts')
                return new LegacyServer(host, { ...shared, ...legacy }, optedIn)
              }),
      tasks: store && ((host) => new TaskEngine(host, store.tasks, taskOptions)),
      apps: asksInPages ? (host) => new AppsSwitch(host, asking, store) : undefined,
    })
    // Loaded with the first request, because an app behind another host never needs it.
    let handler: Promise<FetchHandler> | undefined
    this.fetch = async (request) => {
      handler ??= import('./hosts/fetch.ts').then(({ fetchHandler }) => fetchHandler(this, options.http))
      return (await handler)(request)
    }
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

function checkLegacy({ mailbox, ...times }: LegacyOptions): void {
  if (mailbox !== undefined && !(['leave', 'after', 'watch'] as const).every((name) => isFunction(mailbox[name]))) {
    throw new RallyError(
      'OPTION_INVALID',
      '`legacy.mailbox` must be a Mailbox with the functions leave, after and watch. Pass the mailbox of a store.',
    )
  }
  for (const [name, ms] of Object.entries(times)) {
    if (!(ms > 0))
      throw new RallyError('OPTION_INVALID', `\`legacy.${name}\` must be a number of milliseconds above 0, got ${ms}.`)
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

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}
