// A server behind `bearer` that wants tokens of an authorization server, and a user who agrees to everything.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { rally, type AppOptions } from 'mcp-rally'
import { bearer } from 'mcp-rally/bearer'
import type { OAuthOptions } from 'mcp-rally/client'
import { nodeHandler } from 'mcp-rally/node'
import { onTestFinished } from 'vitest'
import { AuthorizationServer, type AuthorizationServerOptions } from './authorization-server.ts'

export interface Protected {
  readonly url: string
  readonly auth: AuthorizationServer
  /** Method, path and token of every request that reached the server. */
  readonly requests: { method: string; path: string; token: string | undefined }[]
}

/** Closed when the test ends. */
export async function startProtected(
  options: AuthorizationServerOptions = {},
  app: Partial<AppOptions> = {},
): Promise<Protected> {
  const auth = await AuthorizationServer.start(options)
  const tested = rally({ name: 'protected', version: '1.0.0', ...app })
  tested.tool('read', {}, (_args, io) => `read by ${io.caller?.scopes.join(' ')}`)
  tested.tool('write', { scopes: ['write'] }, () => 'written')
  tested.tool('sure', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'yes' : 'no'))
  const requests: Protected['requests'] = []
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const authenticate = bearer({
    issuer: auth.url,
    audience: url,
    jwks: auth.jwks,
    scopes: ['read'],
    clockTolerance: 0,
    cacheSeconds: 0,
  })
  const handler = nodeHandler(tested, { authenticate })
  server.on('request', (request, response) => {
    const { method = '', url: path = '' } = request
    requests.push({ method, path, token: tokenOf(request) })
    handler(request, response)
  })
  onTestFinished(() => {
    auth.close()
    server.closeAllConnections()
    server.close()
  })
  return { url, auth, requests }
}

function tokenOf({ headers }: IncomingMessage): string | undefined {
  return headers.authorization?.replace(/^Bearer /, '')
}

export const REDIRECT_URL = 'http://127.0.0.1:1/callback'

/** The page redirects without a question. */
export async function agree(page: URL): Promise<string> {
  const { headers, status } = await fetch(page, { redirect: 'manual' })
  const location = headers.get('location')
  if (location === null) throw new Error(`The page answered ${status}.`)
  return location
}

export const agreeing: OAuthOptions = { redirectUrl: REDIRECT_URL, onAuthorize: agree }
