// The HTTP client of browsers and Workers.
import type { HttpClient } from './http-client.ts'
import { fetchClient } from './http-fetch.ts'

export function platformHttpClient(url: URL): HttpClient {
  return fetchClient(url, async (address, init) => {
    try {
      return await globalThis.fetch(address, init)
    } catch (error) {
      // Its text has all that a browser tells. A cause would be shown in its place.
      throw isRefusable(error, url) ? new TypeError(`${error.message}. ${refusedBy(url)}`) : error
    }
  })
}

/** A page, in a browser. Workers have no location. */
const { location } = globalThis as { location?: { origin: string } }

/** A browser does not tell a page whether the server of another origin refused it or was not there. */
function isRefusable(error: unknown, url: URL): error is TypeError {
  return error instanceof TypeError && location !== undefined && location.origin !== url.origin
}

function refusedBy({ origin }: URL): string {
  return `Either ${origin} does not answer, or it does not allow pages of ${location?.origin} (\`allowedOrigins\` of a Rally server)`
}
