// A whole login against oidc-provider, an authorization server that others run in production.
import { connect, logout, type SavedLogin } from 'mcp-rally/client'
import { expect, onTestFinished, test } from 'vitest'
import { startBehindProvider, visit } from './behind-provider.ts'
import { REDIRECT_URL } from './resource-server.ts'

test('discovery, registration, consent, call, step-up, refresh and logout', async () => {
  const { url, issuer, requests } = await startBehindProvider()
  const store = new Map<string, SavedLogin>()
  const asked: string[] = []
  const oauth = {
    store,
    redirectUrl: REDIRECT_URL,
    onAuthorize: async (page: URL, { scopes }: { scopes: readonly string[] }) => {
      asked.push(scopes.join(' '))
      return visit(page)
    },
  }
  const client = await connect(url, { oauth })
  onTestFinished(() => client.close())
  expect(await textOf(client, 'read')).toBe('read by ada')
  expect(await textOf(client, 'write')).toBe('written by ada')
  expect(asked).toEqual(['read offline_access', 'read write offline_access'])
  expect(store.get(url)).toMatchObject({ issuer, granted: expect.arrayContaining(['read', 'write']) as string[] })

  // The next process finds a token that is not accepted any more, and refreshes it.
  const { refreshToken } = store.get(url) ?? {}
  store.set(url, { ...(store.get(url) as SavedLogin), accessToken: 'withdrawn' })
  const later = await connect(url, { oauth: { store } })
  onTestFinished(() => later.close())
  expect(await textOf(later, 'write')).toBe('written by ada')
  const grants = (): string[] => requests.filter((path) => path === 'POST /token')
  expect(grants()).toHaveLength(3)

  // After the logout nothing is left here, and the provider does not accept the refresh token.
  const last = store.get(url) as SavedLogin
  expect(last.refreshToken).toBeDefined()
  expect(await logout(url, { oauth: { store } })).toBe(true)
  expect(store.size).toBe(0)
  expect(requests).toContain('POST /token/revocation')
  store.set(url, { ...last, accessToken: 'withdrawn' })
  await expect(connect(url, { oauth: { store } })).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  expect(refreshToken).toBeDefined()
})

async function textOf(client: Awaited<ReturnType<typeof connect>>, tool: string): Promise<unknown> {
  const { content } = await client.callTool(tool)
  return content[0]?.type === 'text' ? content[0].text : content
}
