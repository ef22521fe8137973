import { rally, AuthenticationError, type Authenticate, type Rally } from 'mcp-rally'
import { bearer, type BearerOptions } from 'mcp-rally/bearer'
import { serve } from 'mcp-rally/node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Claims, Issuer, signingKey } from '../../test/interop/issuer.ts'

const AUDIENCE = 'https://mcp.example.com/mcp'
const WELL_KNOWN = '/.well-known/oauth-protected-resource'
const METADATA = `https://mcp.example.com${WELL_KNOWN}/mcp`
const REVISION = '2026-07-28'

let issuer: Issuer
let shipped: string[]
let log: { message: string; details: Record<string, unknown> | undefined }[]

beforeAll(async () => {
  issuer = await Issuer.open()
})

beforeEach(async () => {
  issuer.key = await signingKey('ES256', 'first')
  issuer.published = [issuer.key.jwk]
  issuer.asked.length = 0
  shipped = []
  log = []
})

afterEach(() => {
  vi.useRealTimers()
})

afterAll(() => issuer.close())

/** Sends a request to a path of the server. */
type Ask = (path: string, init?: RequestInit) => Promise<Response>

interface Host {
  name: string
  open(authenticate: Authenticate | undefined): Promise<Ask>
}

const fetching: Host = {
  name: 'app.fetch',
  open: async (authenticate) => {
    const app = deployer({ ...(authenticate && { http: { authenticate } }) })
    return (path, init) => app.fetch(new Request(`http://localhost${path}`, init))
  },
}

const node: Host = {
  name: 'Node HTTP',
  open: async (authenticate) => {
    const serving = await serve(deployer(), { port: 0, ...(authenticate && { authenticate }) })
    onTestFinished(() => serving.close())
    return (path, init) => fetch(`http://127.0.0.1:${serving.port}${path}`, init)
  },
}

describe.each([fetching, node])('$name with bearer', (host) => {
  describe.each([WELL_KNOWN, `${WELL_KNOWN}/mcp`, `${WELL_KNOWN}/mcp?a=b`])('the metadata at %s', (path) => {
    test('is there for anybody, and for the pages of any origin', async () => {
      const ask = await host.open(authenticator({ scopes: ['mcp'] }))
      const response = await ask(path, { headers: { Origin: 'https://inspector.example.com' } })
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('application/json')
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      expect(await response.json()).toEqual({
        resource: AUDIENCE,
        authorization_servers: [issuer.url],
        scopes_supported: ['mcp'],
        bearer_methods_supported: ['header'],
      })
    })

    test('answers HEAD without a body, and the question of a browser whether it may ask', async () => {
      const ask = await host.open(authenticator())
      const head = await ask(path, { method: 'HEAD' })
      expect([head.status, await head.text()]).toEqual([200, ''])
      const preflight = await ask(path, { method: 'OPTIONS' })
      expect(preflight.status).toBe(204)
      expect(Object.fromEntries(preflight.headers)).toMatchObject({
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET',
        'access-control-allow-headers': '*',
      })
    })

    test('is not a place to send messages to', async () => {
      const ask = await host.open(authenticator())
      const response = await call(ask, 'read', { token: await token(), path })
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    })
  })

  test('a call without a token is refused with where to get one', async () => {
    const ask = await host.open(authenticator({ scopes: ['mcp'] }))
    const response = await call(ask, 'read', {})
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe(`Bearer resource_metadata="${METADATA}", scope="mcp"`)
    expect(await response.json()).toMatchObject({ error: { message: 'An access token is required.' } })
  })

  test('a call with a wrong token is refused, and nothing is logged', async () => {
    const ask = await host.open(authenticator())
    const response = await call(ask, 'read', { token: await token({ aud: 'https://other.example.com' }) })
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer error="invalid_token", error_description="The access token is not for this resource.", ' +
        `resource_metadata="${METADATA}"`,
    )
    expect(log).toEqual([])
  })

  test('a token in the query is not taken', async () => {
    const ask = await host.open(authenticator())
    const response = await call(ask, 'read', { path: `/mcp?access_token=${await token()}` })
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe(`Bearer resource_metadata="${METADATA}"`)
  })

  test('a tool that names scopes runs for a token that has them', async () => {
    const ask = await host.open(authenticator({ scopes: ['mcp'] }))
    const response = await call(ask, 'ship', { token: await token({ scope: 'mcp deploy:write deploy:prod' }) })
    expect([response.status, await textOf(response)]).toEqual([200, 'Shipped.'])
  })

  test('a tool that names scopes runs for a token whose scopes imply them', async () => {
    const ask = await host.open(authenticator({ implies: { admin: ['deploy:write', 'deploy:prod'] } }))
    const response = await call(ask, 'ship', { token: await token({ scope: 'admin' }) })
    expect([response.status, await textOf(response)]).toEqual([200, 'Shipped.'])
  })

  test('a tool that names scopes is refused with all that it needs, and does not run', async () => {
    const ask = await host.open(authenticator({ scopes: ['mcp'] }))
    const response = await call(ask, 'ship', { token: await token({ scope: 'mcp deploy:write' }), id: 7 })
    expect(response.status).toBe(403)
    expect(response.headers.get('www-authenticate')).toBe(
      `Bearer error="insufficient_scope", resource_metadata="${METADATA}", scope="mcp deploy:write deploy:prod"`,
    )
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32600 } })
    expect(shipped).toEqual([])
  })

  test('a tool that names no scopes runs for any token', async () => {
    const ask = await host.open(authenticator())
    const response = await call(ask, 'read', { token: await token({ scope: undefined }) })
    expect([response.status, await textOf(response)]).toEqual([200, 'Read.'])
  })

  test('a flow of one user goes on under a refreshed token, and for nobody else', async () => {
    const ask = await host.open(authenticator())
    const asked = await call(ask, 'deploy', { token: await token({ sub: 'ada' }) })
    const { result } = (await asked.json()) as { result: { requestState: string } }
    const goOn = async (claims: Claims): Promise<unknown> => {
      const params = { requestState: result.requestState, inputResponses: { ok: ACCEPTED } }
      return (await call(ask, 'deploy', { token: await token(claims), params })).json()
    }
    const frozen = { error: { code: -32602, message: 'Invalid or expired requestState' } }
    // Of the same OAuth client, for another one, of another issuer's naming, and as the client itself.
    expect(await goOn({ sub: 'bob' })).toMatchObject(frozen)
    expect(await goOn({ sub: 'ada', client_id: 'other' })).toMatchObject(frozen)
    expect(await goOn({ sub: undefined, gty: 'client-credentials' })).toMatchObject(frozen)
    expect(shipped).toEqual([])
    expect(await goOn({ sub: 'ada', jti: 'refreshed', scope: 'mcp more', exp: seconds() + 900 })).toMatchObject({
      result: { resultType: 'complete', content: [{ text: 'Deployed.' }] },
    })
    expect(shipped).toEqual(['deploy'])
  })

  test('a rotated key is fetched when a token names it, and the old one is let go with the cache', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const ask = await host.open(authenticator())
    const old = await token({ exp: seconds() + 3_600 })
    expect((await call(ask, 'read', { token: old })).status).toBe(200)
    expect(issuer.jwksRequests).toBe(1)

    issuer.key = await signingKey('RS256', 'second')
    issuer.published = [issuer.key.jwk]
    const fresh = await token({ exp: seconds() + 3_600 })
    // So shortly after a fetch, a name that nobody knows does not cause another one.
    expect((await call(ask, 'read', { token: fresh })).status).toBe(401)
    expect(issuer.jwksRequests).toBe(1)

    vi.setSystemTime(Date.now() + 31_000)
    expect((await call(ask, 'read', { token: fresh })).status).toBe(200)
    expect(issuer.jwksRequests).toBe(2)
    expect((await call(ask, 'read', { token: old })).status).toBe(200)

    vi.setSystemTime(Date.now() + 30_000)
    expect((await call(ask, 'read', { token: old })).status).toBe(401)
    expect((await call(ask, 'read', { token: fresh })).status).toBe(200)
  })

  test.each([
    ['answers with an error', () => void (issuer.published = undefined)],
    ['gives what is no set of keys', () => void (issuer.published = 'none' as never)],
  ])('keys whose address %s are a 503 that is logged once, until they are there again', async (_what, fail) => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const ask = await host.open(authenticator())
    const jwt = await token()
    fail()
    const refused = await Promise.all([1, 2, 3].map(() => call(ask, 'read', { token: jwt })))
    expect(refused.map(({ status }) => status)).toEqual([503, 503, 503])
    const later = await call(ask, 'read', { token: jwt })
    expect([later.status, later.headers.get('retry-after')]).toEqual([503, '1'])
    expect(later.headers.get('www-authenticate')).toBeNull()
    expect(issuer.jwksRequests).toBe(1)
    expect(log).toEqual([
      { message: 'Access tokens cannot be verified at the moment.', details: { cause: expect.any(Error) as unknown } },
    ])

    issuer.published = [issuer.key.jwk]
    expect((await call(ask, 'read', { token: jwt })).status).toBe(503)
    vi.setSystemTime(Date.now() + 1_000)
    expect((await call(ask, 'read', { token: jwt })).status).toBe(200)
    expect(issuer.jwksRequests).toBe(2)
  })

  test('keys at an address where nobody listens are a 503', async () => {
    const gone = await Issuer.open()
    const jwks = gone.jwks
    await gone.close()
    const ask = await host.open(authenticator({ jwks }))
    expect((await call(ask, 'read', { token: await token() })).status).toBe(503)
    expect(log).toHaveLength(1)
  })

  test('keys that were fetched go on while their address is down, for known names only', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const ask = await host.open(authenticator({ cacheSeconds: 0 }))
    const jwt = await token()
    expect((await call(ask, 'read', { token: jwt })).status).toBe(200)
    issuer.published = undefined
    issuer.key = await signingKey('ES256', 'second')
    vi.setSystemTime(Date.now() + 31_000)
    expect((await call(ask, 'read', { token: await token() })).status).toBe(503)
    expect((await call(ask, 'read', { token: jwt })).status).toBe(200)
  })
})

describe.each([fetching, node])('$name with an authenticator of the author', (host) => {
  const plain = 'Bearer error="insufficient_scope", scope="deploy:write deploy:prod"'

  test('that gives no scopes refuses a tool that names some', async () => {
    const ask = await host.open(() => ({ principal: 'ada' }))
    const response = await call(ask, 'ship', {})
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([403, plain])
    expect((await call(ask, 'read', {})).status).toBe(200)
    expect(shipped).toEqual([])
  })

  test('that gives scopes lets a tool run that names them', async () => {
    const ask = await host.open(() => ({ principal: 'ada', scopes: ['deploy:prod', 'deploy:write'] }))
    expect(await textOf(await call(ask, 'ship', {}))).toBe('Shipped.')
  })

  test('may word the challenge', async () => {
    const ask = await host.open(() => ({
      principal: 'ada',
      scopes: [],
      challenge: (scopes) => `DPoP error="insufficient_scope", scope="${scopes.join(' ')}"`,
    }))
    const response = await call(ask, 'ship', {})
    expect(response.headers.get('www-authenticate')).toBe(
      'DPoP error="insufficient_scope", scope="deploy:write deploy:prod"',
    )
  })

  test('whose scopes are no array is a mistake of the author, and lets nobody in', async () => {
    const ask = await host.open(() => ({ principal: 'ada', scopes: 'deploy:write deploy:prod' as never }))
    expect((await call(ask, 'ship', {})).status).toBe(500)
    expect(log).toMatchObject([{ message: 'authenticate() failed.' }])
  })

  test('that gives nobody refuses', async () => {
    const ask = await host.open(() => undefined)
    const response = await call(ask, 'read', {})
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
  })

  test('that refuses with a cause has it logged, and the caller does not see it', async () => {
    const cause = new Error('the directory is down')
    const ask = await host.open(() => {
      throw new AuthenticationError(503, 'Try again later.', { 'Retry-After': '9' }, { cause })
    })
    const response = await call(ask, 'read', {})
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '9'])
    expect(await response.text()).not.toContain('directory')
    expect(log).toEqual([{ message: 'Try again later.', details: { cause } }])
  })

  test('publishes no metadata', async () => {
    const ask = await host.open(() => ({ principal: 'ada' }))
    expect((await ask(WELL_KNOWN)).status).toBe(host === node ? 404 : 405)
  })

  test('where there is none, a tool that names scopes is refused, and the others run', async () => {
    const ask = await host.open(undefined)
    const response = await call(ask, 'ship', {})
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([403, plain])
    expect((await call(ask, 'read', {})).status).toBe(200)
    expect(shipped).toEqual([])
  })
})

const ACCEPTED = { action: 'accept', content: { confirm: true } }

function deployer(options: Partial<Parameters<typeof rally>[0]> = {}): Rally {
  const app = rally({
    name: 'deployer',
    version: '1.0.0',
    keys: ['a secret of the bearer tests, long enough'],
    // What a refused state is logged with is not the concern of these tests.
    logger: { warn: () => {}, error: (message, details) => void log.push({ message, details }) },
    ...options,
  })
  app.tool('read', {}, () => 'Read.')
  app.tool('ship', { scopes: ['deploy:write', 'deploy:prod'] }, () => {
    shipped.push('ship')
    return 'Shipped.'
  })
  app.tool('deploy', {}, async (_args, io) => {
    if (!(await io.confirm('ok', 'Deploy?'))) return 'Left as it was.'
    shipped.push('deploy')
    return 'Deployed.'
  })
  return app
}

function authenticator(changes: Partial<BearerOptions> = {}): Authenticate {
  return bearer({ issuer: issuer.url, audience: AUDIENCE, jwks: issuer.jwks, ...changes })
}

function token(claims: Claims = {}): Promise<string> {
  return issuer.token({ aud: AUDIENCE, sub: 'ada', client_id: 'cli', scope: 'mcp', ...claims })
}

function seconds(): number {
  return Math.floor(Date.now() / 1000)
}

interface Call {
  token?: string
  path?: string
  id?: number
  params?: object
}

function call(ask: Ask, name: string, { token: jwt, path = '/mcp', id = 1, params }: Call): Promise<Response> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
  }
  return ask(path, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': REVISION,
      'Mcp-Method': 'tools/call',
      'Mcp-Name': name,
      ...(jwt !== undefined && { Authorization: `Bearer ${jwt}` }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, arguments: {}, ...params, _meta },
    }),
  })
}

async function textOf(response: Response): Promise<string> {
  const { result } = (await response.json()) as { result: { content: { text: string }[] } }
  return result.content.map(({ text }) => text).join('')
}
