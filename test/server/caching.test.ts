import type { Rally, ReadReturn } from 'mcp-rally'
import { inputRequired, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accept, askedIn, request, resultOf } from '../wire/messages.ts'
import { makeApp, read, responseOf } from './messages.ts'
import { httpHosts } from './wires.ts'

const hints = (response: object | undefined): unknown[] => {
  const { ttlMs, cacheScope } = resultOf(response)
  return [ttlMs, cacheScope]
}

const EAGER = { ttlMs: 60_000, cacheScope: 'public' as const }
const NOT_TO_KEEP = [0, 'private']

const result = (more: object): ReadReturn => ({ contents: [{ text: 'Hi' }], ...more })

describe('what may be kept of reading a resource', () => {
  const { app } = makeApp()
  app.resource('test://plain', { name: 'plain' }, () => 'Hi')
  app.resource('test://option', { name: 'option', ...EAGER }, () => 'Hi')
  app.resource('test://result', { name: 'result', ttlMs: 1 }, () => result({ ttlMs: 7, cacheScope: 'private' }))
  app.resource('test://asks', { name: 'asks', ...EAGER }, async (io) => {
    await io.ask('ok', 'Really?', z.object({ ok: z.boolean() }))
    return result(EAGER)
  })
  app.resource('test://hand', { name: 'hand', ...EAGER }, (io) =>
    io.responses.state() === undefined ? inputRequired({ state: 1 }) : result(EAGER),
  )

  test.each([
    ['nothing, where nobody said anything', 'test://plain', [0, 'public']],
    ['what the options say', 'test://option', [60_000, 'public']],
    ['what the result says, rather', 'test://result', [7, 'private']],
  ])('%s', async (_what, uri, expected) => {
    expect(hints(await responseOf(app, read(uri)))).toEqual(expected)
  })

  test('nothing, where the round carried answers or a state, whatever its author says', async () => {
    // That an interim round carries no hints at all is checked with every message.
    const { state } = askedIn(await responseOf(app, read('test://asks')))
    const inputResponses = { ok: accept({ ok: true }) }
    expect(hints(await responseOf(app, read('test://asks', { inputResponses, requestState: state })))).toEqual(
      NOT_TO_KEEP,
    )
    expect(hints(await responseOf(app, read('test://asks', { inputResponses })))).toEqual(NOT_TO_KEEP)
    expect(hints(await responseOf(app, read('test://result', { inputResponses })))).toEqual(NOT_TO_KEEP)
    const { requestState } = resultOf(await responseOf(app, read('test://hand')))
    expect(hints(await responseOf(app, read('test://hand', { requestState })))).toEqual(NOT_TO_KEEP)
  })

  test('is private to a known caller, unless its author says otherwise', async () => {
    const ada = { principal: 'ada' }
    expect(hints(await send(app, read('test://plain'), ada))).toEqual([0, 'private'])
    expect(hints(await send(app, read('test://option'), ada))).toEqual([60_000, 'public'])
  })
})

function listing(options: object = {}): Rally {
  const { app } = makeApp(options)
  app.tool('t', {}, () => 'Hi').prompt('p', {}, () => 'Hi')
  return app.resource('a://b', { name: 'b' }, () => 'Hi').resourceTemplate('a://{b}/', { name: 'b' }, () => 'Hi')
}

describe('what may be kept of lists and discovery', () => {
  const METHODS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'server/discover']

  test.each(METHODS)('%s: five minutes for everybody, or as the app says', async (method) => {
    expect(hints(await responseOf(listing(), request(method)))).toEqual([300_000, 'public'])
    expect(hints(await responseOf(listing({ listTtlMs: 1_000 }), request(method)))).toEqual([1_000, 'public'])
  })

  test.each(METHODS)('%s: for the caller alone, where there is one', async (method) => {
    expect(hints(await send(listing(), request(method), { principal: 'ada' }))).toEqual([300_000, 'private'])
  })

  test.each(httpHosts)('over $name the caller is who the host authenticated', async ({ open }) => {
    const wire = await open(listing(), { authenticate: () => ({ principal: 'ada' }) })
    const { response } = await wire.open(request('tools/list')).answer()
    await wire.close()
    expect(hints(response)).toEqual([300_000, 'private'])
  })
})
