// Who this client is at an authorization server: a client that the user registered, the address of a metadata document, or a
// registration made here. A registration is never used at another authorization server.
import type { AuthorizationServer, Client, ClientAuth, CryptoKey } from 'oauth4webapi'
import {
  ClientSecretPost,
  dynamicClientRegistrationRequest,
  None,
  PrivateKeyJwt,
  processDynamicClientRegistrationResponse,
} from 'oauth4webapi'
import { isObject } from '../../protocol/json.ts'
import { zoneOf } from './zones.ts'
import { failedAt, loginFailed } from './errors.ts'
import type { OAuthClient, SavedClient } from './options.ts'
import type { RequestOptions } from './bounded-fetch.ts'

/** A client and how it authenticates itself at the token endpoint. */
export interface KnownClient {
  readonly client: Client
  readonly auth: ClientAuth
  /** Without the secret of a client that the user gave. */
  readonly saved: SavedClient
}

export interface ClientChoice {
  readonly authorizationServer: AuthorizationServer
  readonly given: OAuthClient | undefined
  readonly clientMetadataUrl: string | undefined
  readonly saved: SavedClient | undefined
  /** Undefined if no user is asked. */
  readonly redirectUrl: string | undefined
  /** Shown to users. */
  readonly name: string
  readonly request: RequestOptions
}

export async function chooseClient(choice: ClientChoice): Promise<KnownClient> {
  const { authorizationServer: as, given, clientMetadataUrl, saved, redirectUrl } = choice
  if (given !== undefined) return givenClient(given, as)
  if (clientMetadataUrl !== undefined && as['client_id_metadata_document_supported'] === true) {
    return { client: { client_id: clientMetadataUrl }, auth: None(), saved: { id: clientMetadataUrl } }
  }
  if (saved !== undefined && (redirectUrl === undefined || saved.redirectUrl === redirectUrl) && !isExpired(saved)) {
    return savedClient(saved, as)
  }
  if (redirectUrl === undefined) throw loginFailed('this grant needs a registered client. Pass oauth.client')
  if (as.registration_endpoint === undefined) {
    const found = clientMetadataUrl === undefined ? '' : ' and no client metadata documents'
    throw loginFailed(
      `the authorization server ${as.issuer} supports no registration${found}. Register a client there, and pass its id as oauth.client`,
    )
  }
  return savedClient(await register(choice, redirectUrl), as)
}

export function givenClient(given: OAuthClient, as: AuthorizationServer): KnownClient {
  const { id, secret, key } = given
  return { client: { client_id: id }, auth: authOf(as, secret, undefined, key), saved: { id } }
}

/** The client that the tokens of a saved login belong to. */
export function savedClient(saved: SavedClient, as: AuthorizationServer): KnownClient {
  const { id, secret, authMethod } = saved
  return { client: { client_id: id }, auth: authOf(as, secret, authMethod), saved }
}

function isExpired({ expiresAt }: SavedClient): boolean {
  return expiresAt !== undefined && expiresAt <= Date.now()
}

async function register(choice: ClientChoice, redirectUrl: string): Promise<SavedClient> {
  const { authorizationServer: as, name, request } = choice
  const method = authMethodFor(as)
  const metadata = {
    client_name: name,
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: isNative(redirectUrl) ? 'native' : 'web',
    ...(method !== undefined && { token_endpoint_auth_method: method }),
  }
  try {
    const response = await dynamicClientRegistrationRequest(as, metadata, request)
    const registered = await processDynamicClientRegistrationResponse(await completed(response))
    const {
      client_id: id,
      client_secret: secret,
      client_secret_expires_at: expires,
      token_endpoint_auth_method: chosen,
    } = registered
    const authMethod = typeof chosen === 'string' ? chosen : secret === undefined ? undefined : method
    return {
      id,
      redirectUrl,
      ...(typeof secret === 'string' && { secret }),
      ...(authMethod !== undefined && { authMethod }),
      ...(typeof expires === 'number' && expires > 0 && { expiresAt: expires * 1000 }),
    }
  } catch (error) {
    throw failedAt(`the registration at ${as.issuer}`, error)
  }
}

/** Common deviations from RFC 7591: 200 in place of 201, and a secret that never expires without saying so. */
async function completed(response: Response): Promise<Response> {
  if (response.status !== 200 && response.status !== 201) return response
  const json = await response.json()
  const expires = isObject(json) && json['client_secret'] !== undefined ? { client_secret_expires_at: 0 } : {}
  return Response.json(isObject(json) ? { ...expires, ...json } : json, { status: 201 })
}

/** An address on this machine, or a scheme of its own, belongs to an installed program. */
function isNative(redirectUrl: string): boolean {
  const { protocol, hostname } = new URL(redirectUrl)
  return protocol !== 'https:' || zoneOf(hostname) === 'loopback'
}

/** The method to register with. Undefined: the server does not say what it supports, so it decides. */
function authMethodFor({ token_endpoint_auth_methods_supported: supported }: AuthorizationServer): string | undefined {
  if (supported === undefined) return undefined
  return ['none', 'client_secret_basic', 'client_secret_post'].find((method) => supported.includes(method))
}

function authOf(
  { token_endpoint_auth_methods_supported: supported }: AuthorizationServer,
  secret: string | undefined,
  method: string | undefined,
  key?: OAuthClient['key'],
): ClientAuth {
  // The structural type is that of `CryptoKey`, which has no name that all platforms share.
  if (key !== undefined) return PrivateKeyJwt(key as CryptoKey)
  if (secret === undefined || method === 'none') return None()
  const usesBody = supported?.includes('client_secret_basic') === false && supported.includes('client_secret_post')
  return (method ?? (usesBody ? 'client_secret_post' : '')) === 'client_secret_post'
    ? ClientSecretPost(secret)
    : secretInHeader(secret)
}

/** `client_secret_basic`. The library also escapes `-`, `_` and `.`, which servers that do not decode compare as they are. */
function secretInHeader(secret: string): ClientAuth {
  return (_as, { client_id: id }, _body, headers) => {
    headers.set('authorization', `Basic ${btoa(`${formEncoded(id)}:${formEncoded(secret)}`)}`)
  }
}

function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}
