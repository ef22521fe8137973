import { expect, test, vi } from 'vitest'
import { Connection } from './connection.ts'

const LONG_MS = 3_600_000

function newLink(): Connection {
  return new Connection(
    {
      info: { name: 'test', version: '1' },
      capabilities: {},
      acceptsTasks: false,
      logLevel: undefined,
      onLog: undefined,
      logger: { warn: () => {}, error: () => {} },
      onListChanged: () => {},
      onResourceChanged: () => {},
    },
    () => ({ usesParamHeaders: false, canLoseRequests: false, send: () => () => {}, close: async () => {} }),
  )
}

const complete = (elicitationId: unknown): Record<string, unknown> => ({
  method: 'notifications/elicitation/complete',
  params: { elicitationId },
})

test('a pause for pages ends when the server says that one of them is done with, and with no other', async () => {
  const connection = newLink()
  const ended = vi.fn<() => void>()
  const pausing = connection
    .waitForVisit(LONG_MS, new Set(['a', 'b']), connection.openDeadline('call', LONG_MS, undefined))
    .then(ended)
  for (const id of ['c', 7, undefined, { toString: 1 }]) connection.receive(complete(id))
  await new Promise(setImmediate)
  expect(ended).not.toHaveBeenCalled()
  connection.receive(complete('b'))
  connection.receive(complete('a'))
  await pausing
})

test('it ends by itself after its time', async () => {
  const connection = newLink()
  await connection.waitForVisit(1, new Set(['a']), connection.openDeadline('call', LONG_MS, undefined))
  connection.receive(complete('a'))
})

test('it ends with its call', async () => {
  const connection = newLink()
  const controller = new AbortController()
  const pausing = connection.waitForVisit(
    LONG_MS,
    new Set(['a']),
    connection.openDeadline('call', LONG_MS, controller.signal),
  )
  controller.abort()
  await expect(pausing).rejects.toMatchObject({ code: 'ABORTED' })
  connection.receive(complete('a'))
})
