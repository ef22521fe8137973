// The HTTP client of browsers and Workers.
import type { HttpClient } from './http-client.ts'
import { fetchClient } from './http-fetch.ts'

export function platformHttpClient(url: URL): HttpClient {
  return fetchClient(url, (address, init) => globalThis.fetch(address, init))
}
