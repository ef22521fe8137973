// The official client as its README has it, answering every form.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { takeOrders } from './client-flows.mjs'

takeOrders(async (url) => {
  const client = new Client(
    { name: 'bench', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } }, capabilities: { elicitation: { form: {} } } },
  )
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { confirm: true } }))
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return {
    call: async () => {
      const { content } = await client.callTool({ name: 'deploy', arguments: { env: 'prod' } })
      return content[0].text
    },
    close: () => client.close(),
  }
})
