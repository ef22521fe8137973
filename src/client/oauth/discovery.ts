// Finds the authorization server of a server: the metadata of the resource (RFC 9728) names it, and its own metadata (RFC 8414 or
// OpenID Connect Discovery) says where its endpoints are. Everything that is read here is untrusted.
import type { AuthorizationServer } from 'oauth4webapi'
import { processDiscoveryResponse } from 'oauth4webapi'
import { isObject } from '../../protocol/json.ts'
import { shown } from '../../protocol/text.ts'
import { checkAddress } from './address.ts'
import type { BoundedFetch } from './bounded-fetch.ts'
import type { Challenge } from './challenge.ts'
import { readScopes, unionOf } from './challenge.ts'
import { failedAt, loginFailed } from './errors.ts'

export interface Discovery {
  /** What the token is for. */
  readonly resource: string
  readonly authorizationServer: AuthorizationServer
  /** The scopes that the server names for basic use. */
  readonly scopes: readonly string[] | undefined
}

export interface DiscoveryOptions {
  readonly server: URL
  readonly fetch: BoundedFetch
  readonly signal: AbortSignal
  readonly challenge: Challenge
  /** The only authorization server to use. */
  readonly issuer: string | undefined
  /** The one of the last login. It is used again if the server still names it. */
  readonly lastIssuer: string | undefined
}

export async function discover(options: DiscoveryOptions): Promise<Discovery> {
  const { server } = options
  const metadata = await resourceMetadata(options)
  if (metadata === undefined)
    return { ...(await withoutMetadata(options)), resource: addressOf(server), scopes: undefined }
  const resource = checkResource(metadata['resource'], server)
  const issuer = chooseIssuer(metadata['authorization_servers'], options)
  const authorizationServer = await authorizationServerMetadata(issuer, options)
  if (authorizationServer === undefined)
    throw loginFailed(`${shown(issuer)} has no metadata of an authorization server`)
  return { resource, authorizationServer, scopes: scopesIn(metadata['scopes_supported']) }
}

/** The address of a server as its resource identifier: without a fragment, and without a slash as its only path. */
export function addressOf({ origin, pathname, search }: URL): string {
  return `${origin}${pathname === '/' ? '' : pathname}${search}`
}

/** Returns undefined if the server has none. */
async function resourceMetadata(options: DiscoveryOptions): Promise<Record<string, unknown> | undefined> {
  const { server, challenge, fetch, signal } = options
  const named = challenge.resourceMetadata
  if (named !== undefined) {
    const url = checkAddress(named, 'resource_metadata', server).href
    const found = await readJson(await fetch(url, { signal }))
    if (found === undefined) throw loginFailed(`${shown(url)} has no metadata of the server`)
    return found
  }
  const { origin, pathname } = server
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`
  for (const url of unionOf(pathname === '/' ? [] : [`${wellKnown}${pathname}`], [wellKnown])) {
    const found = await readJson(await fetch(url, { signal }))
    if (found !== undefined) return found
  }
  return undefined
}

/** Returns undefined unless the response is a JSON object. Some servers answer unknown paths with a page. */
async function readJson(response: Response): Promise<Record<string, unknown> | undefined> {
  if (response.status !== 200) return undefined
  try {
    const json: unknown = JSON.parse(await response.text())
    return isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}

/** A token for another server must not be requested, so the resource must be the server or a folder that it is in. */
function checkResource(resource: unknown, server: URL): string {
  if (typeof resource === 'string' && URL.canParse(resource)) {
    const { origin, pathname, search, hash } = new URL(resource)
    const folder = pathname.endsWith('/') ? pathname : `${pathname}/`
    const isServer = pathname === server.pathname && search === server.search
    const isFolder = search === '' && `${server.pathname}/`.startsWith(folder)
    if (origin === server.origin && hash === '' && (isServer || isFolder)) return resource
  }
  throw loginFailed(`the metadata of ${addressOf(server)} must be about this server, got resource ${shown(resource)}`)
}

const MAX_SERVERS = 20

/** Of those that the server names: the given one, the last one, or else the first. */
function chooseIssuer(servers: unknown, { server, issuer, lastIssuer }: DiscoveryOptions): string {
  const listed = Array.isArray(servers) ? servers.slice(0, MAX_SERVERS) : []
  const named = listed.filter((each): each is string => typeof each === 'string' && URL.canParse(each))
  const find = (wanted: string | undefined): string | undefined => named.find((each) => isSameIssuer(each, wanted))
  const chosen = issuer === undefined ? (find(lastIssuer) ?? named[0]) : find(issuer)
  if (chosen !== undefined) return chosen
  if (named.length === 0) throw loginFailed(`the metadata of ${addressOf(server)} names no authorization server`)
  throw loginFailed(
    `the client is registered at ${shown(issuer)}, and the server now names ${named.map((each) => shown(each)).join(', ')}`,
  )
}

/** The only difference that is not one: a slash as the whole path. */
export function isSameIssuer(a: string, b: string | undefined): boolean {
  return b !== undefined && URL.canParse(a) && URL.canParse(b) && new URL(a).href === new URL(b).href
}

function scopesIn(scopes: unknown): string[] | undefined {
  if (!Array.isArray(scopes)) return undefined
  return readScopes(scopes.filter((scope) => typeof scope === 'string').join(' '))
}

/** Returns undefined if there is none at any of the well-known addresses. */
export async function authorizationServerMetadata(
  issuer: string,
  { server, fetch, signal }: Pick<DiscoveryOptions, 'server' | 'fetch' | 'signal'>,
): Promise<AuthorizationServer | undefined> {
  let problem: unknown
  for (const url of metadataAddresses(checkAddress(issuer, 'the authorization server', server))) {
    const response = await fetch(url, { signal })
    if (response.status !== 200) continue
    try {
      // It checks that the document is about this issuer.
      return checkEndpoints(await processDiscoveryResponse(new URL(issuer), response), server)
    } catch (error) {
      problem ??= failedAt(shown(url), error)
    }
  }
  if (problem !== undefined) throw problem
  return undefined
}

function metadataAddresses({ origin, pathname }: URL): string[] {
  const path = pathname.replace(/\/$/, '')
  const oauth = `${origin}/.well-known/oauth-authorization-server${path}`
  const openid = '/.well-known/openid-configuration'
  return unionOf([oauth, `${origin}${openid}${path}`, `${origin}${path}${openid}`])
}

const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint'] as const

function checkEndpoints(metadata: AuthorizationServer, server: URL): AuthorizationServer {
  for (const name of ENDPOINTS) if (metadata[name] !== undefined) checkAddress(metadata[name], name, server)
  return metadata
}

/** A server of 2025-03-26 is its own authorization server. Without metadata, its endpoints are at fixed paths. */
async function withoutMetadata(options: DiscoveryOptions): Promise<Pick<Discovery, 'authorizationServer'>> {
  const { origin } = options.server
  if (options.issuer !== undefined && !isSameIssuer(options.issuer, origin)) {
    throw loginFailed(
      `the client is registered at ${shown(options.issuer)}, and the server names no authorization server`,
    )
  }
  const found = await authorizationServerMetadata(origin, options)
  if (found !== undefined) return { authorizationServer: found }
  return {
    authorizationServer: {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      code_challenge_methods_supported: ['S256'],
    },
  }
}
