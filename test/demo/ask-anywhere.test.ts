import type { Rally } from 'mcp-rally'
import { MemoryStore } from 'mcp-rally'
import { beforeEach, expect, test, vi } from 'vitest'
import { refundsApp } from '../../examples/07-ask-anywhere.ts'
import { callTool, Page, peer, VIEW } from '../apps/peer.ts'
import { linkIn, Visitor } from '../apps/visitor.ts'

const ORDER = { order: 'A1', amount: 20 }
const answers = { sure: { action: 'accept', content: { confirm: true, reason: 'late' } } }
const DONE = 'Refunded 20 EUR for order A1 (late).'
const ANN = { user: 'ann' }

const log = vi.spyOn(console, 'error').mockImplementation(() => {})
beforeEach(() => void log.mockClear())
const payments = (): number => log.mock.calls.filter(([line]) => line === 'paying 20 EUR back').length

function app(): Rally {
  return refundsApp({
    url: 'http://localhost/ask',
    userOf: (cookie) => /user=(\w+)/.exec(cookie ?? '')?.[1],
    store: new MemoryStore(),
    http: { authenticate: (request) => ({ principal: request.header('authorization')?.split(' ')[1] ?? '' }) },
  })
}

test('asks in the forms of the client', async () => {
  const send = await peer(app(), '2026-07-28', { ...ANN, capabilities: { elicitation: { form: {} } } })
  const { requestState } = await callTool(send, 'refund', ORDER)
  const call = { name: 'refund', arguments: ORDER, requestState, inputResponses: answers }
  expect((await send('tools/call', call)).content[0].text).toBe(DONE)
  expect(payments()).toBe(1)
})

test('asks in an MCP App', async () => {
  const send = await peer(app(), '2026-07-28', ANN)
  const page = await Page.open(send)
  const view = (await callTool(send, 'refund', ORDER))._meta[VIEW]
  await page.answer(view, answers)
  expect((await callTool(send, 'rally_result', { id: view.id })).content[0].text).toBe(DONE)
  expect(payments()).toBe(1)
})

test('asks by a link, after a login', async () => {
  const server = app()
  const send = await peer(server, '2026-07-28', { ...ANN, capabilities: {} })
  const link = linkIn(await callTool(send, 'refund', ORDER))
  const { response } = await Visitor.open(server.fetch, link)
  expect(response.headers.get('location')).toBe(`http://localhost/login?next=${encodeURIComponent(link)}`)
  const page = await Visitor.open(server.fetch, link, { Cookie: 'user=ann' })
  const view = await page.look()
  await page.answer(view, answers)
  expect((await callTool(send, 'rally_result', { id: view.id })).content[0].text).toBe(DONE)
  expect(payments()).toBe(1)
})
