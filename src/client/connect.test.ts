import { readFile } from 'node:fs/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { connect, limitLogRate } from './connect.ts'

afterEach(() => void vi.useRealTimers())

test('a client says the name and version of this package, unless it is given others', async () => {
  const said: unknown[] = []
  const app = {
    async dispatch(message: unknown) {
      const { id, params } = message as { id: number; params: { _meta: Record<string, unknown> } }
      said.push(params._meta['io.modelcontextprotocol/clientInfo'])
      return { text: `{"jsonrpc":"2.0","id":${id},"result":{"supportedVersions":["2026-07-28"]}}` }
    },
  }
  await connect(app)
  await connect(app, { name: 'mine', version: '7' })
  const { name, version } = JSON.parse(
    await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as object & {
    name: string
    version: string
  }
  expect(said).toEqual([
    { name, version },
    { name: 'mine', version: '7' },
  ])
})

test('a flood of messages is cut off, says so, and another minute begins anew', () => {
  vi.useFakeTimers({ toFake: ['performance'], now: 1_000 })
  vi.advanceTimersByTime(1)
  const said: string[] = []
  const logger = limitLogRate({ warn: (message) => said.push(message), error: (message) => said.push(message) })
  for (let i = 0; i < 500; i += 1) logger.warn(`warning ${i}`)
  logger.error('unheard')
  expect(said).toHaveLength(100)
  expect(said.at(-1)).toBe('More than 100 log messages in a minute. The rest of this minute is dropped.')
  vi.advanceTimersByTime(60_001)
  logger.error('heard', { detail: 1 })
  expect(said.at(-1)).toBe('heard')
})
