// Between the rounds of a call that the client carries, an instance holds nothing of it, nor of its session.
import { expect, test } from 'vitest'
import { Cancel } from '../protocol/cancel.ts'
import { OPT_IN } from '../protocol/revisions/rounds.ts'
import { App } from '../server/app.ts'
import type { LegacyRequest } from '../server/legacy.ts'
import { RawServer } from '../../test/legacy/raw-server.ts'

const KEYS = ['a secret of the tests of rounds, long enough']

function newServer(): RawServer {
  let server: RawServer | undefined
  const app = new App(
    { name: 'rounds', version: '1', keys: KEYS, logger: { warn() {}, error() {} } },
    {
      legacy: (host) => {
        server = new RawServer(host, {}, OPT_IN)
        return server
      },
    },
  )
  app.tool('ask', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'))
  if (server === undefined) throw new Error('There is no server.')
  return server
}

async function beginSession(server: RawServer, protocolVersion: string): Promise<LegacyRequest> {
  const headers: Record<string, string> = {}
  const header = (name: string): string | undefined => headers[name]
  const request = { header, caller: undefined, takesEvents: true, peer: new Cancel() }
  const clientInfo = { name: 'rounds', version: '1' }
  const params = { protocolVersion, capabilities: { elicitation: {} }, clientInfo }
  const reply = await server.send({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, request)
  headers['mcp-session-id'] = reply?.headers?.['Mcp-Session-Id'] ?? ''
  return request
}

test.each(OPT_IN)(
  'A thousand calls in sessions of %s wait for an answer, and nothing of them is held',
  async (name) => {
    const server = newServer()
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask' } }
    for (let i = 0; i < 1_000; i += 1) {
      const reply = await server.send(call, await beginSession(server, name))
      if (!reply?.text.includes('Sure?')) throw new Error(`Nothing was asked: ${reply?.text}`)
    }
    expect(server.held).toEqual({ sessions: 0, streams: 0, asks: 0, waits: 0, connections: 0 })
  },
)
