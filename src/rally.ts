// An app with its fetch handler: what `rally()` makes.
import type { FetchHandler } from './hosts/fetch.ts'
import type { HttpOptions } from './hosts/http.ts'
import { RallyError } from './protocol/errors.ts'
import type { AppOptions } from './server/app.ts'
import { App } from './server/app.ts'
import type { LegacyOptions } from './server/legacy.ts'
import { lazily } from './server/legacy.ts'

export interface RallyOptions extends AppOptions {
  /** How `app.fetch` treats HTTP requests. A Node server takes the same as options of `serve`. */
  http?: HttpOptions
  /** How 2025-era clients are served, with the same handlers; `false` turns them away. Default: with the defaults. */
  legacy?: false | LegacyOptions
}

export class Rally extends App {
  /** Serves one HTTP request: give it to Hono, Bun, Deno or Workers. */
  readonly fetch: FetchHandler

  constructor(options: RallyOptions) {
    const { legacy = {}, keys, codec, name, audience = name } = options
    if (legacy !== false) checkLegacy(legacy)
    super(
      options,
      legacy === false
        ? undefined
        : (host) =>
            lazily(async () => {
              const { LegacyServer } = await import('./legacy/server.ts')
              return new LegacyServer(host, { audience, keys, codec }, legacy)
            }),
    )
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
    throw new RallyError('APP', 'legacy.mailbox needs the functions leave, after and watch.')
  }
  for (const [name, ms] of Object.entries(times)) {
    if (!(ms > 0)) throw new RallyError('APP', `legacy.${name} is ${ms}; it must be a number of milliseconds above 0.`)
  }
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

/** Makes an app: register tools on it, then serve it. */
export function rally(options: RallyOptions): Rally {
  return new Rally(options)
}
