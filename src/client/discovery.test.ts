import { expect, test } from 'vitest'
import { readDiscovery } from './discovery.ts'

const SUPPORTED = { supportedVersions: ['2031-01-01', '2026-07-28'] }
const INFO = 'io.modelcontextprotocol/serverInfo'

test('a server is what it says it is', () => {
  const info = {
    name: 'weather',
    version: '1.2.3',
    title: 'Weather',
    description: 'Rain',
    websiteUrl: 'https://a/',
    icons: [{ src: 'https://a/icon.png' }],
  }
  const result = { ...SUPPORTED, capabilities: { tools: {} }, instructions: 'Look up.', _meta: { [INFO]: info } }
  expect(readDiscovery(result, 'address')).toEqual({
    revision: '2026-07-28',
    server: { ...info, capabilities: { tools: {} }, instructions: 'Look up.' },
  })
})

test.each<[string, object]>([
  ['nothing', {}],
  ['nothing of use', { capabilities: 'all', instructions: 7, _meta: 'none', serverInfo: [] }],
  ['no name', { _meta: { [INFO]: { name: '', version: 7, title: {}, icons: 'none', instructions: 'sly' } } }],
])('a server that says %s of itself is known by its address', (_what, said) => {
  expect(readDiscovery({ ...SUPPORTED, ...said }, 'a.example').server).toEqual({
    name: 'a.example',
    version: '',
    capabilities: {},
  })
})

test('an icon that is none is left out', () => {
  const info = { name: 'a', version: '1', icons: [null, { src: 7 }, { src: 'data:,' }] }
  expect(readDiscovery({ ...SUPPORTED, _meta: { [INFO]: info } }, '').server.icons).toEqual([{ src: 'data:,' }])
})
