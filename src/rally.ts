// An app with its fetch handler: what `rally()` makes.
import type { FetchHandler } from './hosts/fetch.ts'
import type { HttpOptions } from './hosts/http.ts'
import type { AppOptions } from './server/app.ts'
import { App } from './server/app.ts'

export interface RallyOptions extends AppOptions {
  /** How `app.fetch` treats HTTP requests. A Node server takes the same as options of `serve`. */
  http?: HttpOptions
}

export class Rally extends App {
  /** Serves one HTTP request: give it to Hono, Bun, Deno or Workers. */
  readonly fetch: FetchHandler

  constructor(options: RallyOptions) {
    super(options)
    // Loaded with the first request: an app that is served otherwise never needs it.
    let handler: Promise<FetchHandler> | undefined
    this.fetch = async (request) => {
      handler ??= import('./hosts/fetch.ts').then(({ fetchHandler }) => fetchHandler(this, options.http))
      return (await handler)(request)
    }
  }
}

/** Makes an app: register tools on it, then serve it. */
export function rally(options: RallyOptions): Rally {
  return new Rally(options)
}
