// Authorization servers and servers that attack the client. Each attack is refused, and nothing secret has left.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { OAuthOptions, SavedLogin } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { AuthRequest, Reply } from './authorization-server.ts'
import { agree, agreeing, REDIRECT_URL, startProtected } from './resource-server.ts'

/** Changes the redirect to the client. */
const redirected =
  (change: (params: URLSearchParams) => void) =>
  (reply: Reply): Reply => {
    if (reply.location === undefined) return reply
    const location = new URL(reply.location)
    change(location.searchParams)
    return { location: location.href }
  }

/** Changes the JSON of one path. */
const answered =
  (path: string, change: (json: Record<string, unknown>) => object) =>
  (reply: Reply, request: AuthRequest): Reply =>
    request.path === path ? { ...reply, json: change({ ...reply.json }) } : reply

const METADATA = '/.well-known/oauth-authorization-server'

describe('an authorization server that', () => {
  test.each([
    [
      'answers in the name of another one (mix-up)',
      'iss',
      redirected((params) => params.set('iss', 'https://honest.example')),
    ],
    ['leaves out the name that it promised', 'iss', redirected((params) => params.delete('iss'))],
    ['spells its name otherwise', 'iss', redirected((params) => params.set('iss', `${params.get('iss')}/`))],
    ['answers to another login', 'state', redirected((params) => params.set('state', 'another'))],
    ['answers twice at once', 'state', redirected((params) => params.append('state', 'another'))],
    [
      'calls itself by another name',
      'issuer',
      answered(METADATA, (json) => ({ ...json, issuer: 'https://honest.example' })),
    ],
    ['has no PKCE', 'PKCE', answered(METADATA, (json) => ({ ...json, code_challenge_methods_supported: ['plain'] }))],
    [
      'says nothing of PKCE',
      'PKCE',
      answered(METADATA, (json) => ({ ...json, code_challenge_methods_supported: undefined })),
    ],
    [
      'has a script for a page',
      'authorization_endpoint must begin with https:',
      answered(METADATA, (json) => ({ ...json, authorization_endpoint: 'javascript:alert(1)' })),
    ],
    [
      'has its token endpoint on plain http elsewhere',
      'token_endpoint must begin with https:',
      answered(METADATA, (json) => ({ ...json, token_endpoint: 'http://tokens.example/token' })),
    ],
  ])('%s gets no code', async (_what, words, change) => {
    const { url, auth } = await startProtected({ change })
    await expect(connect(url, { oauth: agreeing })).rejects.toMatchObject({
      code: 'LOGIN_FAILED',
      message: expect.stringMatching(new RegExp(words)) as string,
    })
    expect(auth.to('/token')).toEqual([])
  })

  test.each([
    ['breaks a header', 'ASCII', { access_token: 'a\r\nX-Admin: yes' }],
    ['is too long', 'ASCII', { access_token: 'a'.repeat(20_000) }],
    ['is no bearer token', 'bearer', { token_type: 'DPoP' }],
    ['is of an unknown type', 'token_type', { token_type: 'mac' }],
    ['is an object', 'access_token', { access_token: {} }],
  ])('has a token that %s fails the login', async (_what, words, token) => {
    const { url, requests } = await startProtected({ change: answered('/token', (json) => ({ ...json, ...token })) })
    await expect(connect(url, { oauth: agreeing })).rejects.toMatchObject({
      code: 'LOGIN_FAILED',
      message: expect.stringContaining(words) as string,
    })
    expect(requests.every(({ token: sent }) => sent === undefined)).toBe(true)
  })

  test.each([METADATA, '/register', '/token'])('redirects %s does not see the client elsewhere', async (path) => {
    const trap = await startTrap()
    const { url } = await startProtected({
      change: (reply, request) => (request.path === path ? { status: 307, location: `${trap.url}/x` } : reply),
    })
    await expect(connect(url, { oauth: agreeing })).rejects.toMatchObject({
      code: 'LOGIN_FAILED',
      message: expect.stringContaining('redirects are not followed') as string,
    })
    expect(trap.requests).toEqual([])
  })

  test.each([METADATA, '/register', '/token'])('answers %s without end is cut off', async (path) => {
    const { url } = await startProtected({
      change: (reply, request, response) => {
        if (request.path !== path) return reply
        response.writeHead(200, { 'content-type': 'application/json' })
        const more = (): void => {
          while (!response.destroyed && response.write(' '.repeat(16_384))) continue
          if (!response.destroyed) response.once('drain', more)
        }
        more()
        return {}
      },
    })
    await expect(connect(url, { oauth: agreeing })).rejects.toMatchObject({
      code: 'LOGIN_FAILED',
      message: expect.stringContaining('larger than 131072 bytes') as string,
    })
  })

  test('issues tokens for another audience is asked a few times, and not for ever', async () => {
    const { url, auth, requests } = await startProtected({
      change: (reply, { path }) => {
        if (path !== '/token') return reply
        return { json: { ...reply.json, access_token: auth.tokenFor('https://other.example/mcp', 'read') } }
      },
    })
    await expect(connect(url, { oauth: agreeing })).rejects.toMatchObject({ code: 'UNAUTHORIZED', status: 401 })
    expect(auth.to('/authorize').length).toBeLessThanOrEqual(2)
    expect(requests.length).toBeLessThan(12)
  })

  test('does not get the client and tokens of another one that the user registered at', async () => {
    const { url, auth } = await startProtected()
    const client = { id: 'mine', secret: 'hush', issuer: 'https://honest.example' }
    await expect(connect(url, { oauth: { ...agreeing, client } })).rejects.toMatchObject({
      code: 'LOGIN_FAILED',
      message: expect.stringContaining('registered at "https://honest.example"') as string,
    })
    expect(auth.requests).toEqual([])
  })
})

describe('a server that', () => {
  test.each([
    ['another server', 'https://other.example/mcp'],
    ['its neighbour', (url: string) => `${url}2`],
    ['a tool of its own', (url: string) => `${url}/admin`],
    ['no server at all', 'urn:any'],
    ['many servers', ['https://other.example/mcp']],
    ['nothing', undefined],
  ])('has metadata about %s gets no token', async (_what, resource) => {
    const { auth, url: honest } = await startProtected()
    const server = await startPlain((url) => ({
      resource: typeof resource === 'function' ? resource(url) : resource,
      authorization_servers: [auth.url],
    }))
    await expect(connect(server.url, { oauth: agreeing })).rejects.toMatchObject({
      code: 'LOGIN_FAILED',
      message: expect.stringContaining('must be about this server') as string,
    })
    expect(honest).not.toBe(server.url)
    expect(auth.requests).toEqual([])
  })

  test('redirects a call does not have the token sent elsewhere', async () => {
    const trap = await startTrap()
    const { url } = await startProtected()
    const store = new Map<string, SavedLogin>()
    await (await connect(url, { oauth: { ...agreeing, store } })).close()
    const server = await startPlain(() => ({}), { status: 307, location: `${trap.url}/mcp` })
    store.set(server.url, { issuer: 'https://honest.example', accessToken: 'secret-token' })
    await expect(connect(server.url, { oauth: { store } })).rejects.toMatchObject({ code: 'HTTP_STATUS' })
    expect(server.tokens).toContain('Bearer secret-token')
    expect(trap.requests).toEqual([])
  })

  test('refuses every token gets a few of them, and not for ever', async () => {
    const { auth } = await startProtected()
    const server = await startPlain((url) => ({ resource: url, authorization_servers: [auth.url] }))
    await expect(connect(server.url, { oauth: agreeing })).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
    expect(auth.to('/authorize').length).toBeLessThanOrEqual(2)
    expect(server.tokens.length).toBeLessThan(12)
  })

  test('wants another scope each time has the user asked twice for one call', async () => {
    const { auth } = await startProtected()
    let count = 0
    const server = await startPlain(
      (url) => ({ resource: url, authorization_servers: [auth.url] }),
      () => ({
        status: 403,
        challenge: `Bearer error="insufficient_scope", scope="scope-${(count += 1)}"`,
      }),
    )
    const store = new Map<string, SavedLogin>()
    store.set(server.url, { issuer: auth.url, accessToken: 'some-token' })
    await expect(connect(server.url, { oauth: { ...agreeing, store }, revision: '2026-07-28' })).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
      status: 403,
    })
    expect(auth.to('/authorize').map((params) => params.get('scope'))).toEqual(['scope-1', 'scope-1 scope-2'])
  })

  test('wants a scope that was granted already is not asked about it again', async () => {
    const { auth } = await startProtected()
    const challenge = 'Bearer error="insufficient_scope", scope="write"'
    const server = await startPlain((url) => ({ resource: url, authorization_servers: [auth.url] }), {
      status: 403,
      challenge,
    })
    await expect(connect(server.url, { oauth: agreeing, revision: '2026-07-28' })).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
      message: expect.stringContaining('has granted: write') as string,
    })
    expect(auth.to('/authorize')).toHaveLength(1)
  })

  test('sends the browser elsewhere (open redirect) gets no code', async () => {
    const { url, auth } = await startProtected()
    const oauth: OAuthOptions = {
      redirectUrl: REDIRECT_URL,
      onAuthorize: async (page) => (await agree(page)).replace('127.0.0.1:1', 'evil.example'),
    }
    await expect(connect(url, { oauth })).rejects.toMatchObject({
      code: 'LOGIN_FAILED',
      message: expect.not.stringContaining('code=') as string,
    })
    expect(auth.to('/token')).toEqual([])
  })
})

/** Of a public server, as its `fetch` shows it. */
const SERVER = 'https://mcp.example.com/mcp'
const ISSUER = 'https://login.example.com'

const INSIDE = [
  'http://127.0.0.1:8080/x',
  'https://localhost/x',
  'https://app.localhost/x',
  'https://[::1]/x',
  'https://[::ffff:127.0.0.1]/x',
  'https://2130706433/x',
  'https://0x7f.1/x',
  'https://0.0.0.0/x',
  'https://10.1.2.3/x',
  'https://172.20.0.1/x',
  'https://192.168.0.1/x',
  'https://169.254.169.254/latest/meta-data',
  'https://100.64.0.1/x',
  'https://[fd00::1]/x',
  'https://[fe80::1]/x',
  'https://[64:ff9b::a00:1]/x',
  'https://metadata.google.internal/x',
  'https://router/x',
  'http://login.example.com/x',
  'file:///etc/passwd',
  'https://user:secret@login.example.com/x',
]

describe('a public server that names an address inside (SSRF)', () => {
  const resource = { resource: SERVER, authorization_servers: [ISSUER] }
  const metadata = {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize`,
    token_endpoint: `${ISSUER}/token`,
    registration_endpoint: `${ISSUER}/register`,
    code_challenge_methods_supported: ['S256'],
  }

  test.each(INSIDE)('%s, is not followed there', async (inside) => {
    const attacks = [
      { challenge: `Bearer resource_metadata="${inside}"`, resource, metadata },
      { challenge: 'Bearer', resource: { ...resource, authorization_servers: [inside] }, metadata },
      ...(['authorization_endpoint', 'token_endpoint', 'registration_endpoint'] as const).map((name) => ({
        challenge: 'Bearer',
        resource,
        metadata: { ...metadata, [name]: inside },
      })),
    ]
    for (const attack of attacks) {
      const visited: string[] = []
      const fetch = async (url: string): Promise<Response> => {
        visited.push(url)
        if (url === SERVER) {
          return new Response(null, { status: 401, headers: { 'www-authenticate': attack.challenge } })
        }
        if (url.includes('oauth-protected-resource')) return Response.json(attack.resource)
        if (url.startsWith(`${ISSUER}/.well-known/`)) return Response.json(attack.metadata)
        throw new Error(`${url} was fetched`)
      }
      await expect(connect(SERVER, { oauth: agreeing, fetch })).rejects.toMatchObject({ code: 'LOGIN_FAILED' })
      expect(
        visited.filter((url) => !url.startsWith('https://mcp.example.com/') && !url.startsWith(`${ISSUER}/`)),
      ).toEqual([])
    }
  })
})

/** Must not be reached. */
async function startTrap(): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

interface Refusal {
  readonly status: number
  readonly location?: string
  readonly challenge?: string
}

/** Refuses every call without a token by 401, and every other one as told. */
async function startPlain(
  metadata: (url: string) => object,
  refusal: Refusal | (() => Refusal) = { status: 401 },
): Promise<{ url: string; tokens: string[] }> {
  const tokens: string[] = []
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/.well-known/oauth-protected-resource') === true) {
      return response.setHeader('content-type', 'application/json').end(JSON.stringify(metadata(url)))
    }
    const { authorization } = request.headers
    if (authorization === undefined)
      return response.writeHead(401, { 'www-authenticate': 'Bearer scope="write"' }).end()
    tokens.push(authorization)
    const { status, location, challenge } = typeof refusal === 'function' ? refusal() : refusal
    response.statusCode = status
    if (location !== undefined) response.setHeader('location', location)
    if (challenge !== undefined) response.setHeader('www-authenticate', challenge)
    return response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  return { url, tokens }
}
