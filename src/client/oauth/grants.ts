// The ways to a token: the user's consent, the credentials of the client itself, an ID token of the user's employer, and a refresh
// token. The protocol itself is oauth4webapi's.
import type { AuthorizationServer, TokenEndpointResponse } from 'oauth4webapi'
import {
  authorizationCodeGrantRequest,
  calculatePKCECodeChallenge,
  clientCredentialsGrantRequest,
  generateRandomCodeVerifier,
  generateRandomState,
  genericTokenEndpointRequest,
  processAuthorizationCodeResponse,
  processClientCredentialsResponse,
  processGenericTokenEndpointResponse,
  processRefreshTokenResponse,
  refreshTokenGrantRequest,
  validateAuthResponse,
} from 'oauth4webapi'
import { shown } from '../../protocol/text.ts'
import type { RequestOptions } from './bounded-fetch.ts'
import type { KnownClient } from './client.ts'
import { givenClient } from './client.ts'
import type { Discovery } from './discovery.ts'
import { loginFailed } from './errors.ts'
import type { AuthorizeContext, EnterpriseGrant, OnAuthorize } from './options.ts'

/** Where a token comes from, and what it is for. */
export interface TokenRequest {
  readonly discovery: Discovery
  readonly known: KnownClient
  readonly scopes: readonly string[]
  readonly request: RequestOptions
}

export interface UserConsent {
  readonly onAuthorize: OnAuthorize
  readonly redirectUrl: string
  readonly server: string
}

export async function askUser(token: TokenRequest, consent: UserConsent): Promise<TokenEndpointResponse> {
  const { discovery, known, scopes, request } = token
  const { authorizationServer: as, resource } = discovery
  const { onAuthorize, redirectUrl, server } = consent
  if (as.authorization_endpoint === undefined) throw loginFailed(`${as.issuer} has no authorization_endpoint`)
  if (as.code_challenge_methods_supported?.includes('S256') !== true) {
    throw loginFailed(`the authorization server ${as.issuer} does not support PKCE with S256`)
  }
  const verifier = generateRandomCodeVerifier()
  const state = generateRandomState()
  const page = new URL(as.authorization_endpoint)
  const params = {
    response_type: 'code',
    client_id: known.client.client_id,
    redirect_uri: redirectUrl,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    resource,
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    // OpenID providers ignore offline_access otherwise.
    ...(scopes.includes('offline_access') && { prompt: 'consent' }),
  }
  for (const [name, value] of Object.entries(params)) page.searchParams.set(name, value)
  const context: AuthorizeContext = { issuer: as.issuer, server, scopes, redirectUrl, signal: request.signal }
  const callback = readCallback(await onAuthorize(page, context), redirectUrl)
  // It checks `state` and `iss` before anything else in the address is used.
  const answer = validateAuthResponse(as, known.client, callback, state)
  const options = { ...request, additionalParameters: { resource } }
  const response = await authorizationCodeGrantRequest(
    as,
    known.client,
    known.auth,
    answer,
    redirectUrl,
    verifier,
    options,
  )
  return processAuthorizationCodeResponse(as, known.client, response)
}

function readCallback(address: string | URL, redirectUrl: string): URL {
  const text = String(address)
  if (URL.canParse(text)) {
    const url = new URL(text)
    const expected = new URL(redirectUrl)
    const isRedirect = (['protocol', 'host', 'pathname'] as const).every((part) => url[part] === expected[part])
    if (isRedirect) return url
  }
  // The rest of it may contain a code.
  throw loginFailed(
    `onAuthorize must return an address that begins with ${redirectUrl}, got ${shown(text.split('?')[0])}`,
  )
}

export async function useRefreshToken(token: TokenRequest, refreshToken: string): Promise<TokenEndpointResponse> {
  const { discovery, known, request } = token
  const { authorizationServer: as, resource } = discovery
  const options = { ...request, additionalParameters: { resource } }
  const response = await refreshTokenGrantRequest(as, known.client, known.auth, refreshToken, options)
  return processRefreshTokenResponse(as, known.client, response)
}

export async function useClientCredentials(token: TokenRequest): Promise<TokenEndpointResponse> {
  const { discovery, known, scopes, request } = token
  const { authorizationServer: as, resource } = discovery
  const params = { resource, ...(scopes.length > 0 && { scope: scopes.join(' ') }) }
  const response = await clientCredentialsGrantRequest(as, known.client, known.auth, params, request)
  return processClientCredentialsResponse(as, known.client, response)
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'

/** Exchanges an ID token for a grant at the identity provider, and the grant for a token at the authorization server. */
export async function useEnterpriseGrant(
  token: TokenRequest,
  grant: EnterpriseGrant,
  idp: AuthorizationServer,
  idpRequest: RequestOptions,
): Promise<TokenEndpointResponse> {
  const { discovery, known, scopes, request } = token
  const { authorizationServer: as, resource } = discovery
  const scope = scopes.length > 0 ? { scope: scopes.join(' ') } : {}
  const idpClient = givenClient(grant.idpClient, idp)
  const exchange = {
    requested_token_type: ID_JAG,
    audience: as.issuer,
    resource,
    ...scope,
    subject_token: await grant.idToken(),
    subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
  }
  const exchanged = await genericTokenEndpointRequest(
    idp,
    idpClient.client,
    idpClient.auth,
    TOKEN_EXCHANGE,
    exchange,
    idpRequest,
  )
  // What it returns is a grant and not a token to call a server with, so its type is "N_A".
  const recognizedTokenTypes = { n_a: () => {} }
  const { access_token: assertion } = await processGenericTokenEndpointResponse(idp, idpClient.client, exchanged, {
    recognizedTokenTypes,
  })
  const bearer = { assertion, resource, ...scope }
  const response = await genericTokenEndpointRequest(as, known.client, known.auth, JWT_BEARER, bearer, request)
  return processGenericTokenEndpointResponse(as, known.client, response)
}
