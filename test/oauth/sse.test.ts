// A login at a server of 2024-11-05, whose stream and messages want a token: the official server of that time behind a guard.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OAuthOptions, SavedLogin } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { listenSse } from '../client/legacy-server.mjs'
import { AuthorizationServer } from './authorization-server.ts'
import { agree, agreeing, REDIRECT_URL } from './resource-server.ts'

interface Guarded {
  readonly url: string
  readonly auth: AuthorizationServer
  /** Method and path of each request that was let through. */
  readonly passed: string[]
  /** The scope that a request must have from now on. */
  scope: string
}

/** `isOpen`: requests that need no token. */
async function startGuarded(isOpen = (_request: IncomingMessage): boolean => false): Promise<Guarded> {
  const auth = await AuthorizationServer.start()
  const server = await listenSse((request, response) => isRefused(request, response))
  const guarded: Guarded = { url: server.url, auth, passed: [], scope: 'read' }
  const metadata = new URL('/.well-known/oauth-protected-resource/sse', server.url)
  const isRefused = (request: IncomingMessage, response: ServerResponse): boolean => {
    const { method, url = '', headers } = request
    const { pathname } = new URL(url, server.url)
    if (pathname === metadata.pathname) {
      const document = { resource: server.url, authorization_servers: [auth.url], scopes_supported: ['read'] }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
      return true
    }
    const scopes = scopesIn(headers.authorization)
    const isLetThrough = isOpen(request) || scopes?.includes(guarded.scope) === true
    if (isLetThrough) {
      if (!isOpen(request)) guarded.passed.push(`${method} ${pathname}`)
      return false
    }
    const why = scopes === undefined ? '' : `, error="insufficient_scope", scope="${guarded.scope}"`
    const challenge = `Bearer resource_metadata="${metadata.href}"${why}`
    response.writeHead(scopes === undefined ? 401 : 403, { 'www-authenticate': challenge }).end()
    return true
  }
  onTestFinished(async () => {
    auth.close()
    await server.close()
  })
  return guarded
}

function scopesIn(authorization = ''): string[] | undefined {
  const [, payload] = authorization.split('.')
  if (payload === undefined) return undefined
  const { scope } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { scope: string }
  return scope.split(' ')
}

async function open(url: string, oauth: OAuthOptions): ReturnType<typeof connect> {
  const client = await connect(url, { oauth })
  onTestFinished(() => client.close())
  return client
}

// The user of these tests takes longer than the server may take.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const slow: OAuthOptions = {
  redirectUrl: REDIRECT_URL,
  onAuthorize: (page) => {
    vi.advanceTimersByTime(30_000)
    return agree(page)
  },
}

test.each([
  { what: 'every request', isOpen: () => false, first: 'POST /sse' },
  {
    what: 'the stream and the messages',
    isOpen: ({ method }: IncomingMessage) => method === 'POST',
    first: 'GET /sse',
  },
  {
    what: 'the messages alone',
    isOpen: ({ method, url }: IncomingMessage) => method === 'GET' || url === '/sse',
    first: 'POST /messages',
  },
])('a server that wants a token for $what gets it, however long the user takes', async ({ isOpen, first }) => {
  const { url, auth, passed } = await startGuarded(isOpen)
  const client = await open(url, slow)
  expect(passed[0]).toBe(first)
  expect((await client.listTools()).length).toBeGreaterThan(0)
  expect(auth.to('/authorize').map((params) => params.get('scope'))).toEqual(['read'])
  expect(auth.to('/authorize')[0]?.get('resource')).toBe(url)
})

test('a message that needs more scopes is posted again after the step-up, on the same stream', async () => {
  const guarded = await startGuarded()
  const client = await open(guarded.url, slow)
  guarded.scope = 'write'
  expect((await client.listTools()).length).toBeGreaterThan(0)
  expect(guarded.auth.to('/authorize').map((params) => params.get('scope'))).toEqual(['read', 'read write'])
  expect(guarded.passed.filter((request) => request === 'GET /sse')).toHaveLength(1)
})

test('a token that is refused is refreshed, without the user', async () => {
  const { url, auth } = await startGuarded()
  const store = new Map<string, SavedLogin>()
  await (await open(url, { ...agreeing, store })).close()
  store.set(url, { ...(store.get(url) as SavedLogin), accessToken: 'withdrawn' })
  const client = await open(url, { store })
  expect((await client.listTools()).length).toBeGreaterThan(0)
  expect(auth.to('/token').map((params) => params.get('grant_type'))).toEqual(['authorization_code', 'refresh_token'])
})
