import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { connect } from './connect.ts'

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
