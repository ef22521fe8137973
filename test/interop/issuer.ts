// An OAuth issuer on loopback: it publishes its keys, signs access tokens, and gives them to clients that ask for one.
import { createServer } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { CryptoKey, JWK } from 'jose'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

export interface SigningKey {
  readonly alg: string
  readonly kid: string
  readonly privateKey: CryptoKey
  /** What the issuer publishes. */
  readonly jwk: JWK
}

export async function signingKey(alg: string, kid: string): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } }
}

/** What a token says; what is `undefined` is left out. */
export type Claims = Readonly<Record<string, unknown>>

export function sign(claims: Claims, { alg, kid, privateKey }: SigningKey, header: object = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey)
}

export class Issuer {
  /** What it signs with. */
  key: SigningKey
  /** What it publishes; `undefined` makes it answer with 500. */
  published: JWK[] | undefined
  /** Paths that were asked for, in order. */
  readonly asked: string[] = []
  /** What clients sent to get a token. */
  readonly tokenRequests: URLSearchParams[] = []
  readonly #server: Server

  private constructor(key: SigningKey, server: Server) {
    this.key = key
    this.published = [key.jwk]
    this.#server = server
  }

  static async open(): Promise<Issuer> {
    const server = createServer()
    const issuer = new Issuer(await signingKey('ES256', 'first'), server)
    server.on('request', (request, response) => {
      void issuer.#answer(request).then(({ status = 200, body }) => {
        response
          .writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' })
          .end(JSON.stringify(body))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return issuer
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get jwks(): string {
    return `${this.url}/jwks`
  }

  get jwksRequests(): number {
    return this.asked.filter((path) => path === '/jwks').length
  }

  /** A token that is good for five minutes. */
  token(claims: Claims): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    return sign({ iss: this.url, iat: now, exp: now + 300, ...claims }, this.key)
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  async #answer(request: IncomingMessage): Promise<{ status?: number; body: unknown }> {
    const { pathname } = new URL(request.url ?? '', this.url)
    this.asked.push(pathname)
    switch (pathname) {
      case '/jwks':
        return this.published === undefined ? { status: 500, body: {} } : { body: { keys: this.published } }
      case '/.well-known/oauth-authorization-server':
        return {
          body: {
            issuer: this.url,
            authorization_endpoint: `${this.url}/authorize`,
            token_endpoint: `${this.url}/token`,
            jwks_uri: this.jwks,
            response_types_supported: ['code'],
            grant_types_supported: ['client_credentials'],
            code_challenge_methods_supported: ['S256'],
            token_endpoint_auth_methods_supported: ['client_secret_basic'],
          },
        }
      case '/token':
        return { body: await this.#grant(request) }
      default:
        return { status: 404, body: {} }
    }
  }

  /** The client-credentials grant: whatever is asked for is granted. */
  async #grant(request: IncomingMessage): Promise<unknown> {
    const asked = new URLSearchParams(await text(request))
    this.tokenRequests.push(asked)
    const [, basic = ''] = request.headers.authorization?.split(' ') ?? []
    const [client = ''] = Buffer.from(basic, 'base64').toString().split(':')
    const scope = asked.get('scope') ?? ''
    const token = await this.token({ aud: asked.get('resource') ?? '', sub: client, client_id: client, scope })
    return { access_token: token, token_type: 'Bearer', expires_in: 300, scope }
  }
}
