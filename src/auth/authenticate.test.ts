import type { Authenticate, HttpOptions, HttpRequest, Rally } from 'mcp-rally'
import { rally, AuthenticationError } from 'mcp-rally'
import { fetchHandler } from '../hosts/fetch.ts'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { accept, askedIn, call, headersOf, request, resultOf, textOf } from '../../test/wire/messages.ts'
import { checkMessage } from '../../test/wire/spec.ts'

interface Guarded {
  /** Sends as this user; `undefined` sends no name. */
  send: (message: object, user?: string) => Promise<Response>
  logged: { message: string; details: unknown }[]
  ran: string[]
}

type Open = (app: Rally, options: HttpOptions) => Promise<(init: RequestInit) => Promise<Response>>

const hosts: readonly { name: string; open: Open }[] = [
  {
    name: 'app.fetch',
    open: async (app, options) => {
      const handle = fetchHandler(app, options)
      return (init) => handle(new Request('http://localhost/mcp?tenant=7', init))
    },
  },
  {
    name: 'Node HTTP',
    open: async (app, options) => {
      const { url, close } = await serve(app, { ...options, port: 0 })
      onTestFinished(close)
      return (init) => fetch(`${url}?tenant=7`, init)
    },
  },
]

function byHeader(seen: HttpRequest): { principal: string } | undefined {
  const user = seen.header('X-User')
  return user === undefined ? undefined : { principal: user }
}

describe.each(hosts)('$name', ({ open }) => {
  async function guarded(authenticate: unknown): Promise<Guarded> {
    const logged: Guarded['logged'] = []
    const ran: string[] = []
    const log = (message: string, details?: unknown): void => void logged.push({ message, details })
    const app = rally({
      name: 'guarded',
      version: '1',
      keys: ['a secret, long enough for the tests'],
      logger: { warn: log, error: log },
    })
    app.tool('deploy', {}, async (_args, io) => {
      ran.push('deploy')
      return (await io.confirm('sure', 'Sure?')) ? 'Deployed' : 'Left'
    })
    app.tool('drop', { scopes: ['drop', 'write'] }, () => {
      ran.push('drop')
      return 'Dropped'
    })
    const ask = await open(app, { authenticate: authenticate as Authenticate })
    const send = (message: object, user?: string): Promise<Response> =>
      ask({
        method: 'POST',
        headers: { ...headersOf(message), ...(user !== undefined && { 'X-User': user }) },
        body: JSON.stringify(message),
      })
    return { send, logged, ran }
  }

  test.each([
    { how: 'gives', authenticate: byHeader },
    { how: 'gives a promise of', authenticate: async (seen: HttpRequest) => byHeader(seen) },
    {
      how: 'gives, with more than is needed,',
      authenticate: (seen: HttpRequest) => ({ ...byHeader(seen), email: 'a@b.example', issuedAt: Math.random() }),
    },
  ])('an authenticator that $how a principal lets it in, and binds a flow to it', async ({ authenticate }) => {
    const { send, ran } = await guarded(authenticate)
    const { state } = askedIn((await (await send(call('deploy'), 'ada')).json()) as object)
    const retry = (): object =>
      call('deploy', {}, { requestState: state, inputResponses: { sure: accept({ confirm: true }) } })
    expect(await (await send(retry(), 'eve')).json()).toMatchObject({
      error: { code: -32602, message: 'Invalid or expired requestState' },
    })
    expect(ran).toHaveLength(1)
    expect(textOf((await (await send(retry(), 'ada')).json()) as object)).toBe('Deployed')
  })

  test.each([
    { what: 'nothing', authenticate: () => {} },
    { what: 'null', authenticate: () => null },
    { what: 'a promise of nothing', authenticate: async () => {} },
  ])('$what is a 401, and the body is not looked at', async ({ authenticate }) => {
    const { send, ran, logged } = await guarded(authenticate)
    const response = await send(call('deploy'))
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
    checkMessage(await response.json(), 'tools/call')
    expect([ran, logged]).toEqual([[], []])
  })

  test('Refused refuses with its own status, message and headers', async () => {
    const { send, logged } = await guarded(() => {
      throw new AuthenticationError(403, 'Not on a Sunday.', { 'X-Reason': 'Sunday' })
    })
    const response = await send(call('deploy'))
    expect(response.status).toBe(403)
    expect(response.headers.get('x-reason')).toBe('Sunday')
    expect(await response.json()).toMatchObject({ error: { code: -32600, message: 'Not on a Sunday.' } })
    expect(logged).toEqual([])
  })

  test.each([
    {
      what: 'throws',
      authenticate: () => {
        throw new Error('The password of the database is hunter2.')
      },
    },
    {
      what: 'rejects',
      authenticate: async () => {
        throw new Error('The password of the database is hunter2.')
      },
    },
    {
      what: 'throws no error',
      authenticate: () => {
        throw 'hunter2'
      },
    },
    { what: 'gives a number as the principal', authenticate: () => ({ principal: 7 }) },
    { what: 'gives an object as the principal', authenticate: () => ({ principal: { id: 7 } }) },
    { what: 'gives an empty principal', authenticate: () => ({ principal: '' }) },
    { what: 'gives no principal', authenticate: () => ({ user: 'ada' }) },
    { what: 'gives a text', authenticate: () => 'ada' },
    { what: 'gives true', authenticate: () => true },
    // Any two of these would have the same bytes, and so the same digest.
    { what: 'gives half a character as the principal', authenticate: () => ({ principal: 'a\ud800' }) },
    {
      what: 'refuses with a status that is none',
      authenticate: () => {
        throw new AuthenticationError(99, 'x')
      },
    },
    {
      what: 'refuses with success',
      authenticate: () => {
        throw new AuthenticationError(200, 'x')
      },
    },
    {
      what: 'refuses with a header of two lines',
      authenticate: () => {
        throw new AuthenticationError(401, 'x', { 'WWW-Authenticate': 'Bearer error="a\r\nb"' })
      },
    },
    {
      what: 'refuses with a header that no HTTP can send',
      authenticate: () => {
        throw new AuthenticationError(401, 'x', { 'WWW-Authenticate': 'Bearer error="\u2028"' })
      },
    },
    {
      what: 'refuses with a header without a name',
      authenticate: () => {
        throw new AuthenticationError(401, 'x', { '': 'x' })
      },
    },
  ])('an authenticator that $what is a 500 which tells nothing, and the log has the rest', async ({ authenticate }) => {
    const { send, ran, logged } = await guarded(authenticate)
    for (const _ of [1, 2]) {
      const response = await send(call('deploy'))
      expect(response.status).toBe(500)
      const answer = (await response.json()) as object
      checkMessage(answer, 'tools/call')
      expect(answer).toEqual({ jsonrpc: '2.0', error: { code: -32600, message: 'Authentication failed.' } })
    }
    expect(logged.map(({ message }) => message)).toEqual(['authenticate() failed.', 'authenticate() failed.'])
    expect(logged[0]?.details).toHaveProperty('error')
    expect(ran).toEqual([])
  })

  test('an authenticator sees the method, the address and any header, whatever the case of its name', async () => {
    const seen: unknown[] = []
    const { send } = await guarded((sent: HttpRequest) => {
      const { search } = new URL(sent.url, 'http://localhost')
      seen.push(sent.method, search, sent.header('x-USER'), sent.header('x-nothing'))
      return { principal: 'ada' }
    })
    await send(request('tools/list'), 'ada')
    expect(seen).toEqual(['POST', '?tenant=7', 'ada', undefined])
  })

  test('discovery is public while nobody is known, and private to a principal; lists that scopes filter are private', async () => {
    const { send } = await guarded(byHeader)
    const unguarded = await guarded(undefined)
    expect(await scopeOf(send(request('server/discover'), 'ada'))).toBe('private')
    expect(await scopeOf(unguarded.send(request('server/discover')))).toBe('public')
    expect(await scopeOf(send(request('tools/list'), 'ada'))).toBe('private')
    expect(await scopeOf(unguarded.send(request('tools/list')))).toBe('private')
  })

  test('a caller without the scopes of a tool is a 403, with the challenge that the authenticator gives', async () => {
    const { send, ran } = await guarded((seen: HttpRequest) => ({
      principal: 'ada',
      scopes: seen.header('x-user')?.split(' ') ?? [],
      challenge: (scopes: string[]) => `Bearer scope="${scopes.join(' ')}"`,
    }))
    const refused = await send(call('drop'), 'read')
    expect(refused.status).toBe(403)
    expect(refused.headers.get('www-authenticate')).toBe('Bearer scope="drop write"')
    checkMessage(await refused.json(), 'tools/call')
    expect(ran).toEqual([])
    expect(textOf((await (await send(call('drop'), 'write read drop')).json()) as object)).toBe('Dropped')
  })

  test.each([
    {
      what: 'throws',
      challenge: () => {
        throw new Error('hunter2')
      },
    },
    { what: 'has two lines', challenge: () => 'Bearer a\r\nSet-Cookie: b=c' },
    { what: 'is one that no HTTP can send', challenge: () => 'Bearer \u2028' },
  ])('a challenge that $what is a 500 which tells nothing, and the server lives on', async ({ challenge }) => {
    const { send, ran, logged } = await guarded(() => ({ principal: 'ada', challenge }))
    for (const _ of [1, 2]) {
      const response = await send(call('drop'))
      expect(response.status).toBe(500)
      expect(await response.json()).toMatchObject({ error: { code: -32600, message: 'Authentication failed.' } })
    }
    expect(logged.map(({ message }) => message)).toEqual(['authenticate() failed.', 'authenticate() failed.'])
    expect(ran).toEqual([])
  })
})

async function scopeOf(response: Promise<Response>): Promise<unknown> {
  return resultOf((await (await response).json()) as object)['cacheScope']
}
