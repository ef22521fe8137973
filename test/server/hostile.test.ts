import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { WireRequest } from '../wire/messages.ts'
import { accept, askedIn, request } from '../wire/messages.ts'
import { pathsOf, replaced } from '../wire/paths.ts'
import { ask, makeApp, prompt, read, responseOf } from './messages.ts'
import type { Wire } from './wires.ts'
import { hosts } from './wires.ts'

const VALUES: readonly unknown[] = [
  null,
  0,
  -1,
  1.5,
  'x',
  '',
  '__proto__',
  '\0',
  '\ud800',
  [],
  ['x'],
  {},
  { x: 1 },
  { toString: 'x' },
  true,
]

const { app, logged } = makeApp()
app.tool('t', {}, () => 'Hi')
app.prompt(
  'trip',
  { arguments: z.object({ city: z.string() }), complete: { city: ['Oslo'] } },
  async ({ city }, io) => `${city} ${await io.confirm('sure', 'Sure?')}`,
)
app.resourceTemplate(
  'city://{city}{?q*}',
  { name: 'city' },
  async ({ city }, io) => `${city} ${await io.confirm('sure', 'Sure?')}`,
)

const sure = { sure: accept({ confirm: true }) }
const retry = async (message: (round: object) => WireRequest): Promise<WireRequest> => {
  const { state: requestState } = askedIn(await responseOf(app, message({})))
  return message({ inputResponses: sure, requestState })
}

const messages: [string, () => WireRequest | Promise<WireRequest>][] = [
  ['prompts/get', () => retry((round) => prompt('trip', { city: 'Oslo' }, round))],
  ['resources/read', () => retry((round) => read('city://oslo?q=a&q=b', round))],
  ['prompts/list', () => request('prompts/list', { cursor: 'dA' })],
  ['resources/templates/list', () => request('resources/templates/list', { cursor: 'dA' })],
  [
    'completion/complete',
    () =>
      request('completion/complete', {
        ref: { type: 'ref/prompt', name: 'trip' },
        argument: { name: 'city', value: 'O' },
        context: { arguments: { city: 'x' } },
      }),
  ],
  [
    'subscriptions/listen',
    () =>
      request('subscriptions/listen', {
        notifications: {
          toolsListChanged: true,
          promptsListChanged: true,
          resourcesListChanged: true,
          resourceSubscriptions: ['a'],
        },
      }),
  ],
]

describe.each(hosts)('over $name', ({ isHttp, open }) => {
  let wire: Wire

  beforeAll(async () => {
    wire = await open(app)
  })
  afterAll(() => wire.close())

  test.each(messages)(
    '%s is refused or served, and never breaks, with anything in any place of its params',
    async (_method, make) => {
      const valid = await make()
      const places = pathsOf(valid.params).filter(([first]) => first !== '_meta' && first !== undefined)
      const codes = new Set<number>()
      for (const path of places) {
        for (const value of VALUES) {
          const changed = {
            ...valid,
            id: request('x').id,
            params: replaced(valid.params, path, value) as WireRequest['params'],
          }
          const exchange = wire.open(changed)
          // A response, or the acknowledgement of a stream; each is held against the specification.
          const message = await exchange.next()
          if (message !== undefined && 'error' in message) codes.add(message.error.code)
          if (message !== undefined && 'method' in message) exchange.cancel()
        }
      }
      expect(codes.has(-32602)).toBe(true)
      expect([...codes].filter((code) => code !== -32602 && !(isHttp && code === -32020))).toEqual([])
      expect(logged.errors).toEqual([])
      await expect(ask(wire, request('prompts/list'))).resolves.toMatchObject({
        result: { prompts: [{ name: 'trip' }] },
      })
    },
  )
})
