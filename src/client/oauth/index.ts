// Loaded with the first connection that has the option `oauth`, so that other programs do not pay for it.
import type { FetchLike } from '../options.ts'
import type { HttpClient } from '../transports/http-client.ts'
import { authorizedClient } from './http.ts'
import type { OAuthOptions } from './options.ts'
import { OAuthSession } from './session.ts'

export interface OAuthSetup {
  readonly server: URL
  readonly oauth: OAuthOptions
  readonly name: string
  readonly fetch: FetchLike | undefined
}

export function withOAuth(http: HttpClient, setup: OAuthSetup): HttpClient {
  return authorizedClient(http, openSession(setup))
}

export function openSession({ server, oauth, name, fetch }: OAuthSetup): OAuthSession {
  return new OAuthSession(server, oauth, { name, fetch: fetch ?? ((url, init) => globalThis.fetch(url, init)) })
}
