// The login of one client at one server: keeps its token fresh, and gets another one when the server refuses it.
//
// - One thing happens at a time: calls that are refused together share one refresh or one login.
// - Before anything is sent to an authorization server, it is discovered anew. What belongs to another one is dropped.
// - A request gets a refreshed token once and a login once; a 403 gets more scopes at most twice.
import type { TokenEndpointResponse } from 'oauth4webapi'
import { processRevocationResponse, revocationRequest } from 'oauth4webapi'
import type { FetchLike } from '../options.ts'
import { ClientError, closed, wrongOption } from '../errors.ts'
import { shown } from '../../protocol/text.ts'
import { isSecure } from './zones.ts'
import type { BoundedFetch } from './bounded-fetch.ts'
import { boundedFetch, requestOptions } from './bounded-fetch.ts'
import type { Challenge } from './challenge.ts'
import { NO_CHALLENGE, readChallenge, readScopes, unionOf } from './challenge.ts'
import { chooseClient, givenClient, savedClient } from './client.ts'
import type { KnownClient } from './client.ts'
import type { Discovery } from './discovery.ts'
import { addressOf, authorizationServerMetadata, discover, isSameIssuer } from './discovery.ts'
import { failedAt, loginFailed, oauthCode } from './errors.ts'
import type { TokenRequest } from './grants.ts'
import { askUser, useClientCredentials, useEnterpriseGrant, useRefreshToken } from './grants.ts'
import type { OAuthOptions, SavedLogin, TokenStore } from './options.ts'

export interface SessionContext {
  readonly fetch: FetchLike
  /** Of the client, shown to users. */
  readonly name: string
}

/** What one request has tried. */
export interface Attempt {
  /** The token that it was last sent with. */
  token: string | undefined
  hasRefreshed: boolean
  hasLoggedIn: boolean
  stepUps: number
}

export const newAttempt = (): Attempt => ({ token: undefined, hasRefreshed: false, hasLoggedIn: false, stepUps: 0 })

const MAX_STEP_UPS = 2
/** A token is refreshed this long before it expires, or in the last tenth of its time if that is less. */
const REFRESH_AHEAD_MS = 60_000
const MAX_TOKEN_LENGTH = 16_384
const TOKEN = /^[\x21-\x7e]+$/

export class OAuthSession {
  readonly #server: URL
  readonly #key: string
  readonly #options: OAuthOptions
  readonly #name: string
  readonly #plainFetch: FetchLike
  readonly #fetch: BoundedFetch
  readonly #store: TokenStore
  #saved: SavedLogin | undefined
  #isLoaded = false
  /** When to refresh the token. */
  #refreshAt = Number.POSITIVE_INFINITY
  /** The refresh or login that is in progress. */
  #work: { readonly done: Promise<void>; readonly controller: AbortController; waiting: number } | undefined
  #isClosed = false

  constructor(server: URL, options: OAuthOptions, { fetch, name }: SessionContext) {
    checkOptions(server, options)
    this.#server = server
    this.#key = addressOf(server)
    this.#options = options
    this.#name = name
    this.#plainFetch = fetch
    this.#fetch = boundedFetch(server, fetch)
    this.#store = options.store ?? new Map<string, SavedLogin>()
  }

  /** True if `token` can be used without waiting. */
  get isReady(): boolean {
    return (
      this.#isLoaded &&
      this.#refreshAt > Date.now() &&
      (this.#saved?.accessToken !== undefined || this.#work === undefined)
    )
  }

  get token(): string | undefined {
    return this.#saved?.accessToken
  }

  /** Loads the saved token, refreshes one that expires soon, or waits for the login that is in progress. */
  async prepare(signal: AbortSignal): Promise<void> {
    if (!this.#isLoaded) await this.#load()
    if (this.#work !== undefined && this.token === undefined) return this.#join(signal)
    if (this.#refreshAt > Date.now()) return
    const { token } = this
    await this.#run(signal, async (work) => {
      if (this.token === token) await this.#renew(work)
    })
  }

  /** True if `recover` may help a request that the server refused. */
  mayRecover(status: number, challenge: Challenge, attempt: Attempt): boolean {
    if (this.#isClosed) return false
    if (status === 401) return !attempt.hasLoggedIn
    return status === 403 && challenge.error === 'insufficient_scope' && attempt.stepUps < MAX_STEP_UPS
  }

  /** Gets another token. Returns if the request should be sent again, and throws otherwise. */
  async recover(status: number, challenge: Challenge, attempt: Attempt, signal: AbortSignal): Promise<void> {
    const { token } = attempt
    await this.#run(signal, async (work) => {
      await this.#load()
      // Another call, or another process with the same store, has been here first.
      if (this.token !== undefined && this.token !== token) return
      if (status === 403) {
        attempt.stepUps += 1
        return this.#stepUp(challenge, work)
      }
      if (!attempt.hasRefreshed) {
        attempt.hasRefreshed = true
        if (await this.#refresh(challenge, work)) return
      }
      attempt.hasLoggedIn = true
      await this.#logIn(challenge, work)
    })
  }

  /** Logs in, even if the server has not refused anything yet. */
  async logIn(signal: AbortSignal): Promise<void> {
    const challenge = await this.#probe(signal)
    await this.#run(signal, async (work) => {
      await this.#load()
      await this.#logIn(challenge, work)
    })
  }

  /** Revokes the tokens as far as the authorization server supports it, and forgets them in any case. Returns false if there are none. */
  async logOut(signal: AbortSignal): Promise<boolean> {
    await this.#load()
    const saved = this.#saved
    if (saved === undefined) return false
    this.#saved = undefined
    await this.#store.delete(this.#key)
    await this.#revoke(saved, signal)
    return true
  }

  close(): void {
    this.#isClosed = true
    this.#work?.controller.abort(closed())
  }

  async #load(): Promise<void> {
    const saved = readSaved(await this.#store.get(this.#key))
    this.#isLoaded = true
    if (saved?.accessToken !== this.token || saved?.expiresAt !== this.#saved?.expiresAt) this.#use(saved)
    else this.#saved = saved
  }

  #use(saved: SavedLogin | undefined): void {
    this.#saved = saved
    const { accessToken, refreshToken, expiresAt } = saved ?? {}
    const canRefresh = refreshToken !== undefined || !this.#asksUser
    if (accessToken === undefined || expiresAt === undefined || !canRefresh) {
      this.#refreshAt = Number.POSITIVE_INFINITY
    } else {
      const leftMs = expiresAt - Date.now()
      this.#refreshAt = expiresAt - Math.min(REFRESH_AHEAD_MS, Math.max(0, leftMs / 10))
    }
  }

  async #save(saved: SavedLogin): Promise<void> {
    this.#use(saved)
    await this.#store.set(this.#key, saved)
  }

  /** Runs one piece of work at a time. If it fails, it fails for all who wait for it, so that the user is asked once. */
  async #run(signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    while (this.#work !== undefined) {
      // Nobody waits for it any more, so its end means nothing.
      if (this.#work.controller.signal.aborted) await this.#work.done.catch(() => {})
      else await this.#join(signal)
    }
    if (this.#isClosed) throw closed()
    const controller = new AbortController()
    const done = work(controller.signal).finally(() => {
      this.#work = undefined
    })
    this.#work = { done, controller, waiting: 0 }
    return this.#join(signal)
  }

  /** Waits for the work that is in progress. */
  #join(signal: AbortSignal): Promise<void> {
    const work = this.#work
    if (work === undefined) return Promise.resolve()
    work.waiting += 1
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        work.waiting -= 1
        if (work.waiting === 0) work.controller.abort(signal.reason)
        reject(signal.reason as Error)
      }
      if (signal.aborted) return leave()
      signal.addEventListener('abort', leave, { once: true })
      void work.done.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
    })
  }

  /** Before the token expires. Whatever goes wrong: the server decides whether the old token is still valid. */
  async #renew(signal: AbortSignal): Promise<void> {
    try {
      if (this.#asksUser) await this.#refresh(NO_CHALLENGE, signal)
      else await this.#logIn(NO_CHALLENGE, signal)
    } catch {
      // The call gets the error if the server refuses the token.
    }
    if (this.#refreshAt <= Date.now()) this.#refreshAt = Number.POSITIVE_INFINITY
  }

  get #asksUser(): boolean {
    const { grant = 'authorization_code' } = this.#options
    return grant === 'authorization_code'
  }

  /** Returns false if the user must log in. */
  async #refresh(challenge: Challenge, signal: AbortSignal): Promise<boolean> {
    const { refreshToken, client } = this.#saved ?? {}
    if (!this.#asksUser || refreshToken === undefined || client === undefined) return false
    const discovery = await this.#discover(challenge, signal)
    const saved = this.#saved
    // The server may have changed to another authorization server.
    if (saved?.refreshToken !== refreshToken) return false
    const known = this.#knownClient(saved, discovery)
    const token = this.#tokenRequest(discovery, known, [], signal)
    try {
      const response = await useRefreshToken(token, refreshToken)
      await this.#keep(response, saved, saved.granted ?? [])
      return true
    } catch (error) {
      const code = oauthCode(error)
      if (code === 'invalid_client' || code === 'unauthorized_client') await this.#save({ issuer: saved.issuer })
      else if (code === 'invalid_grant') await this.#save(withoutTokens(saved))
      else throw failedAt('the refresh', error)
      return false
    }
  }

  #knownClient(saved: SavedLogin, { authorizationServer }: Discovery): KnownClient {
    const { client: given } = this.#options
    const isGiven = given !== undefined && given.id === saved.client?.id
    return isGiven
      ? givenClient(given, authorizationServer)
      : savedClient(saved.client ?? { id: '' }, authorizationServer)
  }

  /** Asks for the scopes that a call needs, and those of earlier calls. */
  async #stepUp(challenge: Challenge, signal: AbortSignal): Promise<void> {
    const { granted = [] } = this.#saved ?? {}
    const needed = challenge.scopes ?? []
    if (needed.length > 0 && needed.every((scope) => granted.includes(scope))) {
      throw new ClientError(
        'UNAUTHORIZED',
        `The server refuses this caller (HTTP 403) for want of scopes that the authorization server has granted: ${needed.join(' ')}. Ask the operator of the server.`,
        { status: 403 },
      )
    }
    await this.#logIn(challenge, signal)
  }

  async #logIn(challenge: Challenge, signal: AbortSignal): Promise<void> {
    const { onAuthorize, client: given, clientMetadataUrl, scopes: own } = this.#options
    if (this.#asksUser && onAuthorize === undefined) {
      throw new ClientError(
        'UNAUTHORIZED',
        `The server ${this.#key} wants a login. Pass oauth.onAuthorize to connect(), or log in first.`,
        { status: 401 },
      )
    }
    const discovery = await this.#discover(challenge, signal)
    const { authorizationServer } = discovery
    const saved = this.#saved ?? { issuer: authorizationServer.issuer }
    const redirectUrl = this.#asksUser ? await this.#redirectUrl() : undefined
    try {
      const known = await chooseClient({
        authorizationServer,
        given,
        clientMetadataUrl,
        saved: saved.client,
        redirectUrl,
        name: this.#name,
        request: requestOptions(this.#fetch, signal),
      })
      const { client: _, ...rest } = saved
      const login = { ...rest, client: known.saved }
      // A registration is kept even if the user does not agree.
      await this.#save(login)
      const scopes = unionOf(
        own,
        saved.requested,
        challenge.scopes ?? (saved.requested === undefined ? discovery.scopes : []),
      )
      const token = this.#tokenRequest(discovery, known, scopes, signal)
      const response = await this.#requestToken(token, redirectUrl)
      await this.#keep(response, { ...withoutTokens(login), requested: scopes }, token.scopes)
    } catch (error) {
      throw failedAt(`the login at ${authorizationServer.issuer}`, error)
    }
  }

  async #requestToken(token: TokenRequest, redirectUrl: string | undefined): Promise<TokenEndpointResponse> {
    const { grant, onAuthorize } = this.#options
    if (grant === 'client_credentials') return useClientCredentials(token)
    if (typeof grant === 'object') {
      const { signal } = token.request
      const server = new URL(grant.idpIssuer)
      // The user named the identity provider, so it may be elsewhere than the server.
      const fetch = boundedFetch(server, this.#plainFetch)
      const idp = await authorizationServerMetadata(grant.idpIssuer, { server, fetch, signal })
      if (idp === undefined) throw loginFailed(`the identity provider ${grant.idpIssuer} has no metadata`)
      return useEnterpriseGrant(token, grant, idp, requestOptions(fetch, signal))
    }
    if (onAuthorize === undefined || redirectUrl === undefined) throw loginFailed('oauth.onAuthorize is missing')
    return askUser(token, { onAuthorize, redirectUrl, server: this.#key })
  }

  #tokenRequest(
    discovery: Discovery,
    known: KnownClient,
    scopes: readonly string[],
    signal: AbortSignal,
  ): TokenRequest {
    const { scopes_supported: supported } = discovery.authorizationServer
    const wantsRefresh = this.#asksUser && supported?.includes('offline_access') === true
    const all = wantsRefresh ? unionOf(scopes, ['offline_access']) : scopes
    return { discovery, known, scopes: all, request: requestOptions(this.#fetch, signal) }
  }

  /** Saves the tokens of a response. */
  async #keep(response: TokenEndpointResponse, login: SavedLogin, requested: readonly string[]): Promise<void> {
    const {
      access_token: accessToken,
      token_type: type,
      refresh_token: refreshToken,
      expires_in: seconds,
      scope,
    } = response
    if (type !== 'bearer') throw loginFailed(`the token must be a bearer token, got ${shown(type)}`)
    if (accessToken.length > MAX_TOKEN_LENGTH || !TOKEN.test(accessToken)) {
      throw loginFailed(`the access token must have at most ${MAX_TOKEN_LENGTH} visible ASCII characters`)
    }
    const { expiresAt: _, ...rest } = login
    await this.#save({
      ...rest,
      accessToken,
      ...(refreshToken !== undefined && { refreshToken }),
      ...(seconds !== undefined && { expiresAt: Date.now() + seconds * 1000 }),
      granted: scope === undefined ? requested : readScopes(scope),
    })
  }

  /** Also drops what belongs to another authorization server than the server names now. */
  async #discover(challenge: Challenge, signal: AbortSignal): Promise<Discovery> {
    const { client } = this.#options
    const lastIssuer = this.#saved?.issuer
    const discovery = await discover({
      server: this.#server,
      fetch: this.#fetch,
      signal,
      challenge,
      issuer: client?.issuer,
      lastIssuer,
    })
    const { issuer } = discovery.authorizationServer
    if (lastIssuer !== undefined && !isSameIssuer(lastIssuer, issuer)) await this.#save({ issuer })
    return discovery
  }

  async #redirectUrl(): Promise<string> {
    const { redirectUrl } = this.#options
    const given = typeof redirectUrl === 'function' ? await redirectUrl() : redirectUrl
    const text = String(given)
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || (url.protocol === 'http:' && !isSecure(url))) {
      throw wrongOption(`oauth.redirectUrl must be an https address or one on this machine, got ${shown(text)}.`)
    }
    return text
  }

  /** What the server says to a request without a token. */
  async #probe(signal: AbortSignal): Promise<Challenge> {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const body = '{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{}}'
    const response = await this.#fetch(this.#server.href, { method: 'POST', headers, body, signal })
    return readChallenge(response.headers.get('www-authenticate') ?? undefined)
  }

  /** Revoking is a courtesy: the tokens are forgotten already. */
  async #revoke(saved: SavedLogin, signal: AbortSignal): Promise<void> {
    const token = saved.refreshToken ?? saved.accessToken
    if (token === undefined || saved.client === undefined) return
    const options = { server: this.#server, fetch: this.#fetch, signal }
    const as = await authorizationServerMetadata(saved.issuer, options).catch(() => undefined)
    if (as?.revocation_endpoint === undefined) return
    const { client, auth } = this.#knownClient(saved, { authorizationServer: as, resource: '', scopes: undefined })
    try {
      await processRevocationResponse(
        await revocationRequest(as, client, auth, token, requestOptions(this.#fetch, signal)),
      )
    } catch (error) {
      throw failedAt(`logged out here, but ${as.issuer} did not revoke the token`, error)
    }
  }
}

function withoutTokens({ issuer, client, requested }: SavedLogin): SavedLogin {
  return { issuer, ...(client !== undefined && { client }), ...(requested !== undefined && { requested }) }
}

/** What a store returns may be damaged, and a token goes into a header. */
function readSaved(saved: SavedLogin | undefined): SavedLogin | undefined {
  if (saved === undefined || typeof saved.issuer !== 'string') return undefined
  const { accessToken } = saved
  return accessToken === undefined || TOKEN.test(accessToken) ? saved : withoutTokens(saved)
}

function checkOptions(server: URL, { onAuthorize, redirectUrl, grant, client, clientMetadataUrl }: OAuthOptions): void {
  if (!isSecure(server)) {
    throw wrongOption(
      `oauth: the server must have an https address, or be on this machine, got ${shown(server.origin)}.`,
    )
  }
  if (onAuthorize !== undefined && redirectUrl === undefined) {
    throw wrongOption('oauth.redirectUrl is missing. It says where the authorization server redirects the user to.')
  }
  if (grant !== undefined && grant !== 'authorization_code' && client === undefined) {
    throw wrongOption(
      `oauth.client is missing. The grant ${typeof grant === 'string' ? grant : 'of an enterprise'} needs it.`,
    )
  }
  if (clientMetadataUrl !== undefined && !isDocumentUrl(clientMetadataUrl)) {
    throw wrongOption(`oauth.clientMetadataUrl must be an https address with a path, got ${shown(clientMetadataUrl)}.`)
  }
}

function isDocumentUrl(text: string): boolean {
  return URL.canParse(text) && new URL(text).protocol === 'https:' && new URL(text).pathname !== '/'
}
