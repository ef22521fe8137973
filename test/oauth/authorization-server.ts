// A small authorization server on this machine, whose every response a test can change. The user agrees to everything.
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Reply {
  readonly status?: number
  readonly location?: string
  readonly json?: object
}

export interface AuthRequest {
  readonly path: string
  readonly params: URLSearchParams
  readonly authorization: string | undefined
}

export interface AuthorizationServerOptions {
  /** The path of the issuer. Default: none. */
  readonly path?: string
  /** How long access tokens are valid. Default 600. */
  readonly expiresInSeconds?: number
  /** More members of the metadata, or others. */
  readonly metadata?: object
  /** Changes a response. What it does itself with the response is not replied again. */
  readonly change?: (reply: Reply, request: AuthRequest, response: ServerResponse) => Reply | Promise<Reply>
}

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

export class AuthorizationServer {
  readonly #server: Server
  readonly #options: AuthorizationServerOptions
  readonly #codes = new Map<string, URLSearchParams>()
  readonly #refreshTokens = new Map<string, { scope: string; resource: string }>()
  readonly requests: AuthRequest[] = []
  readonly jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig' }] }
  url = ''

  static async start(options: AuthorizationServerOptions = {}): Promise<AuthorizationServer> {
    const server = createServer()
    const opened = new AuthorizationServer(server, options)
    server.on('request', (request, response) => void opened.#serve(request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    opened.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${options.path ?? ''}`
    return opened
  }

  private constructor(server: Server, options: AuthorizationServerOptions) {
    this.#server = server
    this.#options = options
  }

  /** The requests to a path, in order. */
  to(path: string): URLSearchParams[] {
    return this.requests.filter((request) => request.path === path).map(({ params }) => params)
  }

  revokeRefreshTokens(): void {
    this.#refreshTokens.clear()
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://localhost')
    let body = ''
    for await (const chunk of incoming.setEncoding('utf8')) body += String(chunk)
    const isJson = incoming.headers['content-type']?.includes('json') === true
    const params = isJson ? new URLSearchParams([['json', body]]) : new URLSearchParams(body || searchParams)
    const request = { path: pathname, params, authorization: incoming.headers.authorization }
    this.requests.push(request)
    const usual = this.#reply(request)
    const reply = (await this.#options.change?.(usual, request, response)) ?? usual
    if (response.writableEnded || response.headersSent) return
    response.statusCode = reply.status ?? (reply.location === undefined ? 200 : 302)
    if (reply.location !== undefined) response.setHeader('location', reply.location)
    if (reply.json === undefined) return void response.end()
    response.setHeader('content-type', 'application/json').end(JSON.stringify(reply.json))
  }

  #reply({ path, params }: AuthRequest): Reply {
    const prefix = this.#options.path ?? ''
    switch (path) {
      case `/.well-known/oauth-authorization-server${prefix}`:
        return { json: this.#metadata() }
      case `${prefix}/jwks`:
        return { json: this.jwks }
      case `${prefix}/register`:
        return { status: 201, json: { ...JSON.parse(params.get('json') ?? '{}'), client_id: `client-${randomUUID()}` } }
      case `${prefix}/authorize`:
        return this.#authorize(params)
      case `${prefix}/token`:
        return this.#token(params)
      case `${prefix}/revoke`:
        this.#refreshTokens.delete(params.get('token') ?? '')
        return {}
      default:
        return { status: 404 }
    }
  }

  #metadata(): object {
    const { url } = this
    return {
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      registration_endpoint: `${url}/register`,
      revocation_endpoint: `${url}/revoke`,
      jwks_uri: `${url}/jwks`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
      authorization_response_iss_parameter_supported: true,
      ...this.#options.metadata,
    }
  }

  #authorize(params: URLSearchParams): Reply {
    const code = randomUUID()
    this.#codes.set(code, params)
    const location = new URL(params.get('redirect_uri') ?? '')
    location.search = String(new URLSearchParams({ code, state: params.get('state') ?? '', iss: this.url }))
    return { location: location.href }
  }

  #token(params: URLSearchParams): Reply {
    const granted = this.#granted(params)
    if (granted === undefined) return { status: 400, json: { error: 'invalid_grant' } }
    const { expiresInSeconds = 600 } = this.#options
    const refresh = randomUUID()
    this.#refreshTokens.set(refresh, granted)
    return {
      json: {
        access_token: this.tokenFor(granted.resource, granted.scope),
        token_type: 'Bearer',
        expires_in: expiresInSeconds,
        refresh_token: refresh,
        scope: granted.scope,
      },
    }
  }

  /** A refresh token is good for one use. */
  #granted(params: URLSearchParams): { scope: string; resource: string } | undefined {
    switch (params.get('grant_type')) {
      case 'authorization_code': {
        const asked = this.#codes.get(params.get('code') ?? '')
        this.#codes.delete(params.get('code') ?? '')
        const verifier = params.get('code_verifier') ?? ''
        const challenge = createHash('sha256').update(verifier).digest('base64url')
        return asked?.get('code_challenge') === challenge ? read(asked) : undefined
      }
      case 'refresh_token': {
        const granted = this.#refreshTokens.get(params.get('refresh_token') ?? '')
        this.#refreshTokens.delete(params.get('refresh_token') ?? '')
        return granted
      }
      case 'client_credentials':
        return read(params)
      default:
        return undefined
    }
  }

  /** A signed access token. */
  tokenFor(audience: string, scope: string): string {
    const now = Math.floor(Date.now() / 1000)
    const { expiresInSeconds = 600 } = this.#options
    const claims = { iss: this.url, aud: audience, sub: 'ada', client_id: 'tested', scope, iat: now, jti: randomUUID() }
    const text = `${part({ alg: 'ES256', typ: 'at+jwt' })}.${part({ ...claims, exp: now + expiresInSeconds })}`
    return `${text}.${sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
}

function read(source: URLSearchParams): { scope: string; resource: string } {
  return { scope: source.get('scope') ?? '', resource: source.get('resource') ?? '' }
}

/** A part of a token. */
function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
