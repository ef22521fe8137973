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

/** The login of one connection. */
export interface ConnectionLogin {
  /** Sends the token with every request of an HTTP client, which must be for the server alone. */
  readonly authorized: (http: HttpClient) => HttpClient
  /** The token that is used at the moment. */
  readonly token: () => string | undefined
  /** Ends a login that is in progress. */
  readonly close: () => void
}

export function openLogin(setup: OAuthSetup): ConnectionLogin {
  const session = openSession(setup)
  return {
    authorized: (http) => authorizedClient(http, session),
    token: () => session.token,
    close: () => session.close(),
  }
}

export function openSession({ server, oauth, name, fetch }: OAuthSetup): OAuthSession {
  return new OAuthSession(server, oauth, { name, fetch: fetch ?? ((url, init) => globalThis.fetch(url, init)) })
}
