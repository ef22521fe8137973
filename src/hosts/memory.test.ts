import { getEventListeners } from 'node:events'
import { rally, send } from 'mcp-rally'
import { expect, test } from 'vitest'
import { accept, askedIn, call, errorOf, textOf } from '../../test/wire/messages.ts'

function waiter(): { app: ReturnType<typeof rally>; ran: string[] } {
  const ran: string[] = []
  const app = rally({ name: 'memory', version: '1', logger: { warn() {}, error() {} } })
  app.tool('mutate', { input: { type: 'object' } }, (args) => {
    Object.assign(args, { more: true })
    ran.push('mutate')
    return 'Mutated'
  })
  app.tool('ask', {}, async (_args, io) => String(await io.confirm('sure', 'Sure?')))
  app.tool('report', {}, (_args, io) => {
    io.progress(1)
    return 'Reported'
  })
  return { app, ran }
}

test('what is sent is a copy, as over any wire', async () => {
  const message = call('mutate', { list: [1] })
  expect(textOf(await send(waiter().app, message))).toBe('Mutated')
  expect(message.params['arguments']).toEqual({ list: [1] })
})

test('a flow is bound to the principal that is given', async () => {
  const { app } = waiter()
  const { state } = askedIn(await send(app, call('ask'), { principal: 'ada' }))
  const retry = call('ask', {}, { requestState: state, inputResponses: { sure: accept({ confirm: true }) } })
  expect(errorOf(await send(app, retry)).message).toBe('Invalid or expired requestState')
  expect(textOf(await send(app, retry, { principal: 'ada' }))).toBe('true')
})

test('a signal that was aborted before begins nothing', async () => {
  const { app, ran } = waiter()
  expect(await send(app, call('mutate'), { signal: AbortSignal.abort() })).toBeUndefined()
  expect(ran).toEqual([])
})

test('nothing stays on a signal after the response', async () => {
  const { signal } = new AbortController()
  const answered = send(waiter().app, call('mutate'), { signal })
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  await answered
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

test('a call without a listener for notifications gets its result all the same', async () => {
  expect(textOf(await send(waiter().app, call('report', {}, {}, { progressToken: 1 })))).toBe('Reported')
})

test('a notification has no response', async () => {
  expect(await send(waiter().app, { jsonrpc: '2.0', method: 'notifications/x' })).toBeUndefined()
})
