// The official client finds its own way in: from the refusal to the metadata, from there to the issuer and to a token.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { CallToolResult } from '@modelcontextprotocol/client'
import {
  Client,
  ClientCredentialsProvider,
  InsufficientScopeError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { rally } from 'mcp-rally'
import { bearer } from 'mcp-rally/bearer'
import { nodeHandler } from 'mcp-rally/node'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { Issuer } from './issuer.ts'

let issuer: Issuer
let endpoint: string
let principals: string[]
/** Method and path of every request that reached the server. */
let requests: string[]

beforeEach(async () => {
  issuer = await Issuer.open()
  principals = []
  requests = []
  endpoint = await serveBehind(issuer)
  return () => issuer.close()
})

describe('the official client', () => {
  test('gets a token for this resource and completes a call of several rounds', async () => {
    const client = await connect('robot')
    expect(textOf(await client.callTool({ name: 'deploy' }))).toBe('Deployed.')
    expect(issuer.tokenRequests.map((request) => Object.fromEntries(request))).toEqual([
      { grant_type: 'client_credentials', resource: endpoint, scope: 'mcp' },
    ])
    expect(requests.slice(0, 2)).toEqual(['POST /mcp', 'GET /.well-known/oauth-protected-resource/mcp'])
    expect(new Set(principals)).toEqual(new Set([JSON.stringify([issuer.url, 'robot', 'robot'])]))
  })

  test('comes back with a stronger token where a tool needs one', async () => {
    const client = await connect('robot')
    expect(textOf(await client.callTool({ name: 'ship' }))).toBe('Shipped.')
    expect(issuer.tokenRequests.map((request) => request.get('scope'))).toEqual(['mcp', 'mcp deploy:write'])
  })

  test('learns which scopes are missing where it does not come back', async () => {
    const client = await connect('robot', 'throw')
    const refused = client.callTool({ name: 'ship' })
    await expect(refused).rejects.toBeInstanceOf(InsufficientScopeError)
    await expect(refused).rejects.toMatchObject({ requiredScope: 'mcp deploy:write' })
  })
})

/** A server of the author's own that the app is mounted in; its address is known before the app is. */
async function serveBehind({ url, jwks }: Issuer): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const audience = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const authenticate = bearer({ issuer: url, audience, jwks, scopes: ['mcp'] })
  const watched: typeof authenticate = async (request) => {
    const caller = await authenticate(request)
    if (caller) principals.push(caller.principal)
    return caller
  }
  const handle = nodeHandler(deployer(), {
    authenticate: Object.assign(watched, { documents: authenticate.documents }),
  })
  server.on('request', (request, response) => {
    requests.push(`${request.method} ${request.url}`)
    handle(request, response)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return audience
}

function deployer() {
  const app = rally({ name: 'deployer', version: '1.0.0', keys: ['a secret of the interop tests, long enough'] })
  app.tool('deploy', {}, async (_args, io) => ((await io.confirm('ok', 'Deploy?')) ? 'Deployed.' : 'Left as it was.'))
  app.tool('ship', { scopes: ['deploy:write'] }, () => 'Shipped.')
  return app
}

async function connect(clientId: string, onInsufficientScope?: 'throw'): Promise<Client> {
  const client = new Client(
    { name: 'interop', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } }, capabilities: { elicitation: { form: {} } } },
  )
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { confirm: true } }))
  onTestFinished(() => client.close())
  const authProvider = new ClientCredentialsProvider({ clientId, clientSecret: 'secret', expectedIssuer: issuer.url })
  await client.connect(
    new StreamableHTTPClientTransport(new URL(endpoint), {
      authProvider,
      ...(onInsufficientScope && { onInsufficientScope }),
    }),
  )
  return client
}

function textOf({ content }: CallToolResult): string {
  return content.map((block) => (block.type === 'text' ? block.text : `(${block.type})`)).join('\n')
}
