// A server of ours behind oidc-provider, an authorization server that others run in production.
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import { rally } from 'mcp-rally'
import { bearer } from 'mcp-rally/bearer'
import { nodeHandler } from 'mcp-rally/node'
import { onTestFinished } from 'vitest'

/** `bearer` makes the principal of issuer, subject and client. */
function user(principal = '[]'): unknown {
  return (JSON.parse(principal) as unknown[])[1]
}

/** Closed when the test ends. */
export async function startBehindProvider(): Promise<{ url: string; issuer: string; requests: string[] }> {
  const [auth, server] = [createServer(), createServer()]
  for (const each of [auth, server]) await new Promise<void>((resolve) => each.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const each of [auth, server]) {
      each.closeAllConnections()
      each.close()
    }
  })
  const issuer = `http://127.0.0.1:${(auth.address() as AddressInfo).port}`
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: 'tested' }] },
    cookies: { keys: ['tested'] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    ttl: { AccessToken: 600, Grant: 600, Interaction: 600, Session: 600, IdToken: 600, RefreshToken: 600 },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'read write',
          audience: url,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  })
  const requests: string[] = []
  const serve = provider.callback()
  auth.on('request', (request, response) => {
    requests.push(`${request.method} ${request.url?.split('?')[0]}`)
    void serve(request, response)
  })
  const app = rally({ name: 'behind', version: '1.0.0' })
  app.tool('read', {}, (_args, io) => `read by ${String(user(io.caller?.principal))}`)
  app.tool('write', { scopes: ['write'] }, (_args, io) => `written by ${String(user(io.caller?.principal))}`)
  const authenticate = bearer({ issuer, audience: url, jwks: `${issuer}/jwks`, scopes: ['read'] })
  server.on('request', nodeHandler(app, { authenticate }))
  return { url, issuer, requests }
}

/**
 * The user logs in and agrees, as in a browser: with cookies, and by following redirects. Returns the address that the last page
 * redirects to.
 */
export async function visit(page: URL): Promise<string> {
  const cookies = new Map<string, string>()
  const redirectUrl = page.searchParams.get('redirect_uri') ?? ''
  let request: { url: URL; body?: URLSearchParams } = { url: page }
  for (let steps = 0; steps < 20; steps += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(request.url, {
      redirect: 'manual',
      headers: { cookie },
      ...(request.body !== undefined && { method: 'POST', body: request.body }),
    })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    const html = await response.text()
    if (location?.startsWith(redirectUrl) === true) return location
    request = location === null ? formIn(html, request.url) : { url: new URL(location, request.url) }
  }
  throw new Error('The provider does not come to an end.')
}

function formIn(html: string, page: URL): { url: URL; body: URLSearchParams } {
  const [, action = ''] = /<form[^>]* action="([^"]+)"/.exec(html) ?? []
  const [, prompt = ''] = /name="prompt" value="([^"]+)"/.exec(html) ?? []
  if (action === '') throw new Error(`There is no form at ${page.href}:\n${html}`)
  const fields = prompt === 'login' ? { prompt, login: 'ada', password: 'any' } : { prompt }
  return { url: new URL(action, page), body: new URLSearchParams(fields) }
}
