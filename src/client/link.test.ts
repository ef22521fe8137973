import { expect, test, vi } from 'vitest'
import { Link } from './link.ts'

const LONG_MS = 3_600_000

function newLink(): Link {
  return new Link(
    {
      info: { name: 'test', version: '1' },
      capabilities: {},
      takesTasks: false,
      logLevel: undefined,
      onLog: undefined,
      logger: { warn: () => {}, error: () => {} },
      onListChanged: () => {},
    },
    () => ({ isHttp: false, send: () => () => {}, close: async () => {} }),
  )
}

const complete = (elicitationId: unknown): Record<string, unknown> => ({
  method: 'notifications/elicitation/complete',
  params: { elicitationId },
})

test('a pause for pages ends when the server says that one of them is done with, and with no other', async () => {
  const link = newLink()
  const ended = vi.fn<() => void>()
  const pausing = link.visited(LONG_MS, new Set(['a', 'b']), link.begin('call', LONG_MS, undefined)).then(ended)
  for (const id of ['c', 7, undefined, { toString: 1 }]) link.receive(complete(id))
  await new Promise(setImmediate)
  expect(ended).not.toHaveBeenCalled()
  link.receive(complete('b'))
  link.receive(complete('a'))
  await pausing
})

test('it ends by itself after its time', async () => {
  const link = newLink()
  await link.visited(1, new Set(['a']), link.begin('call', LONG_MS, undefined))
  link.receive(complete('a'))
})

test('it ends with its call', async () => {
  const link = newLink()
  const controller = new AbortController()
  const pausing = link.visited(LONG_MS, new Set(['a']), link.begin('call', LONG_MS, controller.signal))
  controller.abort()
  await expect(pausing).rejects.toMatchObject({ code: 'ABORTED' })
  link.receive(complete('a'))
})
