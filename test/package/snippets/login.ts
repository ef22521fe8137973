// The page on logins: a server behind `bearer`, and an authorization server whose user agrees at once.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../consumer.ts'
import type { Page } from './page.ts'

/** A module beside the snippets. */
export const AUTHORIZATION_SERVER = readFileSync(join(ROOT, 'test/oauth/authorization-server.ts'), 'utf8')

const ADDRESS = ["'https://mcp.example.com/mcp'", 'server'] as const
const CLOSE = 'http.closeAllConnections()\nhttp.close()\nauth.close()'

export const loginPage: Page = {
  file: 'docs/login.md',
  given: `
    import { rally } from 'mcp-rally'
    import { bearer } from 'mcp-rally/bearer'
    import { connect, login, logout, type SavedLogin } from 'mcp-rally/client'
    import { nodeHandler } from 'mcp-rally/node'
    import { createServer } from 'node:http'
    import type { AddressInfo } from 'node:net'
    import { AuthorizationServer } from './authorization-server.js'
    const auth = await AuthorizationServer.start()
    const app = rally({ name: 'docs', version: '1.0.0' })
    app.tool('notes', {}, () => '3 notes of ada')
    const http = createServer().listen(0, '127.0.0.1')
    await onceEmitted(http, 'listening')
    const server = 'http://127.0.0.1:' + (http.address() as AddressInfo).port + '/mcp'
    const authenticate = bearer({ issuer: auth.url, audience: server, jwks: auth.jwks, scopes: ['notes'] })
    http.on('request', nodeHandler(app, { authenticate }))
    const redirectUrl = 'http://127.0.0.1:7777/callback'
    const openBrowser = async (page: URL): Promise<string> =>
      (await fetch(page, { redirect: 'manual' })).headers.get('location') ?? ''
    const onAuthorize = openBrowser
  `,
  snippets: [
    { has: 'openBrowser(page)', but: [ADDRESS], use: CLOSE },
    {
      has: "grant: 'client_credentials'",
      but: [ADDRESS],
      use: `console.log(notes.content)\n${CLOSE}`,
      prints: ["[ { type: 'text', text: '3 notes of ada' } ]"],
    },
    { has: 'await logout(', use: `await later.close()\n${CLOSE}` },
  ],
}
