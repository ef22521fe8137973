// A login from the first refusal to the result: real servers, and a user who agrees.
import type { OAuthOptions, SavedLogin, ServerTypes } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { AuthorizationServer } from './authorization-server.ts'
import { agree, agreeing, REDIRECT_URL, startProtected } from './resource-server.ts'

describe('a client with oauth', () => {
  test('logs in when the server refuses it, and then calls', async () => {
    const { url, auth } = await startProtected()
    const client = await open(url, agreeing)
    expect(await textOf(client, 'read')).toBe('read by read')
    const [page] = auth.to('/authorize')
    expect(Object.fromEntries(page ?? [])).toMatchObject({
      response_type: 'code',
      redirect_uri: REDIRECT_URL,
      code_challenge_method: 'S256',
      resource: url,
      scope: 'read',
    })
    const [registration] = auth.to('/register')
    expect(JSON.parse(registration?.get('json') ?? '')).toMatchObject({
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    })
    expect(auth.to('/token').map((params) => params.get('resource'))).toEqual([url])
  })

  test('asks the user once for many calls at the same time', async () => {
    const { url, auth } = await startProtected()
    const client = await open(url, agreeing)
    const texts = await Promise.all(Array.from({ length: 8 }, () => textOf(client, 'write')))
    expect(new Set(texts)).toEqual(new Set(['written']))
    // The first login was for `read`, the second for all eight calls.
    expect(auth.to('/authorize').map((params) => params.get('scope'))).toEqual(['read', 'read write'])
  })

  test('keeps the scopes of earlier logins when a call needs more', async () => {
    const { url, auth } = await startProtected()
    const client = await open(url, agreeing)
    expect(await textOf(client, 'write')).toBe('written')
    expect(await textOf(client, 'read')).toBe('read by read write')
    expect(auth.to('/authorize')).toHaveLength(2)
    expect(auth.to('/register')).toHaveLength(1)
  })

  test('calls a typed tool that the server lists only with more scopes', async () => {
    const { url, auth } = await startProtected()
    const client = await connect<ServerTypes<{ write: { input: {} } }>>(url, { oauth: agreeing })
    onTestFinished(() => client.close())
    expect((await client.tools.write()).content).toEqual([{ type: 'text', text: 'written' }])
    expect(auth.to('/authorize').map((params) => params.get('scope'))).toEqual(['read', 'read write'])
  })

  test('refreshes the token before it expires, without the user', async () => {
    const { url, auth } = await startProtected({ expiresInSeconds: 3 })
    const client = await open(url, agreeing)
    await vi.waitFor(
      async () => {
        await textOf(client, 'read')
        expect(auth.to('/token').map((params) => params.get('grant_type'))).toEqual([
          'authorization_code',
          'refresh_token',
        ])
      },
      { timeout: 4_000, interval: 100 },
    )
    expect(auth.to('/authorize')).toHaveLength(1)
  })

  test('refreshes a token that the server refuses, once for all calls', async () => {
    const { url, auth } = await startProtected()
    const store = storeOf()
    const first = await open(url, { ...agreeing, store })
    await textOf(first, 'read')
    // As if its key had been withdrawn.
    spoil(store)
    const client = await open(url, { ...agreeing, store })
    await Promise.all([textOf(client, 'read'), textOf(client, 'read'), textOf(client, 'read')])
    expect(auth.to('/token').map((params) => params.get('grant_type'))).toEqual(['authorization_code', 'refresh_token'])
  })

  test('asks the user when the refresh token is not accepted any more', async () => {
    const { url, auth } = await startProtected()
    const store = storeOf()
    await textOf(await open(url, { ...agreeing, store }), 'read')
    spoil(store)
    auth.revokeRefreshTokens()
    expect(await textOf(await open(url, { ...agreeing, store }), 'read')).toBe('read by read')
    expect(auth.to('/authorize')).toHaveLength(2)
  })

  test('uses the tokens of a store without a login', async () => {
    const { url, auth } = await startProtected()
    const store = storeOf()
    await open(url, { ...agreeing, store })
    expect(await textOf(await open(url, { store }), 'read')).toBe('read by read')
    expect(auth.to('/authorize')).toHaveLength(1)
  })

  test('says what is missing if nobody can be asked', async () => {
    const { url } = await startProtected()
    await expect(connect(url, { oauth: {} })).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
      message: expect.stringContaining('Pass oauth.onAuthorize') as string,
    })
  })

  test('does not count the time that the user takes to log in', async () => {
    const { url } = await startProtected()
    const slow: OAuthOptions = {
      redirectUrl: REDIRECT_URL,
      onAuthorize: async (page) => {
        await new Promise((resolve) => void setTimeout(resolve, 900))
        return agree(page)
      },
    }
    const client = await connect(url, { oauth: slow, timeoutMs: 600 })
    onTestFinished(() => client.close())
    expect(await textOf(client, 'read')).toBe('read by read')
  })

  test('ends a login that nobody waits for any more', async () => {
    const { url } = await startProtected()
    let signal: AbortSignal | undefined
    const oauth: OAuthOptions = {
      redirectUrl: REDIRECT_URL,
      onAuthorize: (_page, context) => {
        signal = context.signal
        return new Promise(() => {})
      },
    }
    const controller = new AbortController()
    const connecting = connect(url, { oauth, signal: controller.signal })
    await vi.waitFor(() => expect(signal).toBeDefined())
    controller.abort()
    await expect(connecting).rejects.toMatchObject({ code: 'ABORTED' })
    await vi.waitFor(() => expect(signal?.aborted).toBe(true))
  })

  test('tells every waiting call that the user declined, and asks once', async () => {
    const { url, auth } = await startProtected({
      change: (reply, { path, params }) => {
        if (path !== '/authorize' || !params.get('scope')?.includes('write')) return reply
        const location = new URL(reply.location ?? '')
        location.searchParams.delete('code')
        location.searchParams.set('error', 'access_denied')
        location.searchParams.set('error_description', 'Not\u001b[31m today')
        return { location: location.href }
      },
    })
    const client = await open(url, agreeing)
    const calls = await Promise.allSettled([textOf(client, 'write'), textOf(client, 'write'), textOf(client, 'write')])
    for (const call of calls) {
      expect(call).toMatchObject({
        status: 'rejected',
        reason: { code: 'LOGIN_FAILED', message: expect.stringContaining('access_denied: Not [31m today') as string },
      })
    }
    expect(auth.to('/authorize')).toHaveLength(2)
    // The token for other calls is still there.
    expect(await textOf(client, 'read')).toBe('read by read')
  })

  test('logs in for a server of 2025-11-25 too', async () => {
    const { url, auth } = await startProtected()
    const client = await connect(url, { oauth: agreeing, revision: '2025-11-25' })
    onTestFinished(() => client.close())
    expect(await textOf(client, 'write')).toBe('written')
    expect(auth.to('/authorize').map((params) => params.get('scope'))).toEqual(['read', 'read write'])
  })

  test('works through the fetch of the user', async () => {
    const { url, auth } = await startProtected()
    const seen = new Set<string>()
    const client = await connect(url, {
      oauth: agreeing,
      fetch: (address, init) => {
        seen.add(new URL(address).pathname)
        return fetch(address, init)
      },
    })
    onTestFinished(() => client.close())
    expect(await textOf(client, 'read')).toBe('read by read')
    expect(auth.to('/token')).toHaveLength(1)
    expect(seen).toEqual(
      new Set([
        '/mcp',
        '/.well-known/oauth-protected-resource/mcp',
        '/.well-known/oauth-authorization-server',
        '/register',
        '/token',
      ]),
    )
  })

  test('authenticates itself with client credentials', async () => {
    const { url, auth } = await startProtected()
    const client = await open(url, { grant: 'client_credentials', client: { id: 'robot', secret: 'hush:hush' } })
    expect(await textOf(client, 'write')).toBe('written')
    expect(auth.to('/token').map((params) => [params.get('grant_type'), params.get('scope')])).toEqual([
      ['client_credentials', 'read'],
      ['client_credentials', 'read write'],
    ])
    const used = auth.requests.find(({ path }) => path === '/token')?.authorization
    expect(used).toBe(`Basic ${btoa('robot:hush%3Ahush')}`)
  })

  test('prefers a given client, then its metadata document, then a registration', async () => {
    const supported = { metadata: { client_id_metadata_document_supported: true } }
    const clientMetadataUrl = 'https://client.example/metadata.json'
    expect(await idsOf(supported, { ...agreeing, clientMetadataUrl, client: { id: 'given' } })).toEqual(['given'])
    expect(await idsOf(supported, { ...agreeing, clientMetadataUrl })).toEqual([clientMetadataUrl])
    expect(await idsOf({}, { ...agreeing, clientMetadataUrl })).toEqual([expect.stringMatching(/^client-/)])
  })

  test.each([
    [{ onAuthorize: agree }, 'redirectUrl is missing'],
    [{ grant: 'client_credentials' }, 'oauth.client is missing'],
    [{ ...agreeing, clientMetadataUrl: 'http://client.example/x' }, 'clientMetadataUrl must be an https address'],
  ] as [OAuthOptions, string][])('rejects the options %o', async (oauth, words) => {
    await expect(connect('http://127.0.0.1:1/mcp', { oauth })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringContaining(words) as string,
    })
  })

  test('rejects an Authorization header beside it', async () => {
    const { url } = await startProtected()
    const headers = { authorization: 'Bearer mine' }
    await expect(connect(url, { oauth: agreeing, headers })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('never sends a token over http to another machine', async () => {
    await expect(connect('http://mcp.example/mcp', { oauth: agreeing })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringContaining('must have an https address') as string,
    })
  })
})

test('a registration is used again with the same redirect address, and made anew with another one', async () => {
  const { url, auth } = await startProtected()
  const store = storeOf()
  await open(url, { ...agreeing, store })
  for (const redirectUrl of [REDIRECT_URL, 'http://127.0.0.1:2/callback']) {
    auth.revokeRefreshTokens()
    spoil(store)
    await open(url, { ...agreeing, redirectUrl, store })
  }
  expect(auth.to('/register')).toHaveLength(2)
})

test('an authorization server whose issuer has a path is found', async () => {
  const { url, auth } = await startProtected({ path: '/tenant' })
  await open(url, agreeing)
  expect(auth.to('/.well-known/oauth-authorization-server/tenant')).toHaveLength(1)
})

test('nothing of one authorization server is sent to the next one', async () => {
  const { url, auth } = await startProtected()
  const before = await AuthorizationServer.start()
  onTestFinished(() => before.close())
  const login: SavedLogin = {
    issuer: before.url,
    client: { id: 'client-of-the-first', secret: 'secret-of-the-first', redirectUrl: REDIRECT_URL },
    accessToken: before.tokenFor(url, 'read'),
    refreshToken: 'refresh-of-the-first',
  }
  const store = storeOf()
  store.set(url, login)
  await open(url, { ...agreeing, store })
  const sent = auth.requests.map(({ params, authorization }) => `${String(params)} ${authorization}`).join('\n')
  expect(sent).not.toMatch(/of-the-first|secret-of/)
  expect(before.requests).toEqual([])
  expect(store.get(url)?.issuer).toBe(auth.url)
})

/** The client ids that the user was asked about. */
async function idsOf(options: object, oauth: OAuthOptions): Promise<(string | null)[]> {
  const { url, auth } = await startProtected(options)
  await open(url, oauth)
  return auth.to('/authorize').map((params) => params.get('client_id'))
}

async function open(url: string, oauth: OAuthOptions): ReturnType<typeof connect> {
  const client = await connect(url, { oauth })
  onTestFinished(() => client.close())
  return client
}

async function textOf(client: Awaited<ReturnType<typeof connect>>, tool: string): Promise<unknown> {
  const { content } = await client.callTool(tool)
  return content[0]?.type === 'text' ? content[0].text : content
}

function storeOf(): Map<string, SavedLogin> {
  return new Map()
}

/** Makes the access tokens invalid. */
function spoil(store: Map<string, SavedLogin>): void {
  for (const [server, login] of store) store.set(server, { ...login, accessToken: 'spoiled' })
}
