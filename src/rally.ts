// An app with its fetch handler: what `rally()` makes.
import type { FetchHandler } from './hosts/fetch.ts'
import type { HttpOptions } from './hosts/http.ts'
import { RallyError } from './protocol/errors.ts'
import { isObject } from './protocol/json.ts'
import type { OptInRevision } from './protocol/revisions/rounds.ts'
import { OPT_IN } from './protocol/revisions/rounds.ts'
import type { AppOptions } from './server/options.ts'
import { App } from './server/app.ts'
import type { LegacyOptions } from './server/legacy.ts'
import { lazily } from './server/legacy.ts'
import type { TasksOptions } from './server/tasks.ts'
import { readTasksOptions, TaskEngine } from './tasks/engine.ts'
import type { Store } from './store/store.ts'

export interface RallyOptions extends AppOptions {
  /** How `app.fetch` treats HTTP requests. A Node server takes the same as options of `serve`. */
  http?: HttpOptions
  /** How 2025-era clients are served, with the same handlers; `false` turns them away. Default: with the defaults. */
  legacy?: false | LegacyOptions
  /** Keeps tasks, and what a fleet shares: see mcp-rally/sqlite and mcp-rally/postgres. Default: no tasks. */
  store?: Store
  /** How tasks are kept and worked on. */
  tasks?: TasksOptions
  /**
   * Drafts of the protocol to speak beside its releases, with clients that ask for them by name: '2026-06-XX' and
   * '2026-02-03-draft', the first draft of rounds. Default: none.
   */
  revisions?: readonly OptInRevision[]
}

export class Rally extends App {
  /** Serves one HTTP request: give it to Hono, Bun, Deno or Workers. */
  readonly fetch: FetchHandler

  constructor(options: RallyOptions) {
    const { legacy = {}, revisions: optedIn = [], store, tasks = {} } = options
    if (legacy !== false) checkLegacy(legacy)
    checkRevisions(optedIn, legacy !== false)
    const taskOptions = readTasksOptions(tasks)
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
    })
    // Loaded with the first request: an app that is served otherwise never needs it.
    let handler: Promise<FetchHandler> | undefined
    this.fetch = async (request) => {
      handler ??= import('./hosts/fetch.ts').then(({ fetchHandler }) => fetchHandler(this, options.http))
      return (await handler)(request)
    }
  }
}

function checkLegacy({ mailbox, ...times }: LegacyOptions): void {
  if (mailbox !== undefined && !(['leave', 'after', 'watch'] as const).every((name) => isFunction(mailbox[name]))) {
    throw new RallyError('OPTION_INVALID', 'legacy.mailbox needs the functions leave, after and watch.')
  }
  for (const [name, ms] of Object.entries(times)) {
    if (!(ms > 0))
      throw new RallyError('OPTION_INVALID', `legacy.${name} is ${ms}; it must be a number of milliseconds above 0.`)
  }
}

function checkStore(store: Store | undefined): void {
  if (store === undefined || (isObject(store) && isObject(store.tasks) && isObject(store.mailbox))) return
  throw new RallyError(
    'OPTION_INVALID',
    "store is none: make one with sqlite('tasks.db') of mcp-rally/sqlite, postgres(url) of mcp-rally/postgres, or new MemoryStore().",
  )
}

function checkRevisions(revisions: readonly string[], hasSessions: boolean): void {
  const known: readonly string[] = OPT_IN
  const wrong = Array.isArray(revisions) ? revisions.find((name) => !known.includes(name)) : revisions
  if (wrong !== undefined) {
    const names = known.map((name) => `'${name}'`).join(' and ')
    throw new RallyError(
      'OPTION_INVALID',
      `revisions: ${JSON.stringify(wrong)} is none to opt into; there are ${names}.`,
    )
  }
  if (revisions.length > 0 && !hasSessions) {
    throw new RallyError(
      'OPTION_INVALID',
      `revisions: ${revisions.join(', ')} needs sessions, which legacy: false turns away.`,
    )
  }
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

/** Makes an app: register tools on it, then serve it. */
export function rally(options: RallyOptions): Rally {
  return new Rally(options)
}
