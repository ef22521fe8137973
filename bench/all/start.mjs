// How long a fresh process takes to import what a server over HTTP needs.
import { measureImports } from '../import.mjs'
import { installExtraPeers, versionOf } from './extra.mjs'

const modules = {
  rally: { package: undefined, names: ['index.js', 'node.js'] },
  official: {
    package: '@modelcontextprotocol/server',
    names: ['@modelcontextprotocol/server', '@modelcontextprotocol/node'],
  },
  v1: {
    package: '@modelcontextprotocol/sdk',
    names: ['@modelcontextprotocol/sdk/server/mcp.js', '@modelcontextprotocol/sdk/server/streamableHttp.js'],
  },
  fastmcp: { package: 'fastmcp', names: ['fastmcp'] },
  mcpUse: { package: 'mcp-use', names: ['mcp-use/server'] },
}

export async function measureStart({ quick }) {
  const times = quick ? 3 : 15
  const missing = installExtraPeers()
  const packages = {}
  const versions = {}
  const failures = {}
  for (const [name, { package: of, names }] of Object.entries(modules)) {
    try {
      const addresses = names.map((each) => (of === undefined ? built(each) : import.meta.resolve(each)))
      await measureImports({ times: 1, packages: { [name]: addresses } })
      packages[name] = addresses
      if (of !== undefined) versions[name] = versionOf(of)
    } catch (error) {
      failures[name] = missing ?? error.message
    }
  }
  return { times, versions, failures, milliseconds: await measureImports({ times, packages }) }
}

function built(entry) {
  return new URL(`../../dist/${entry}`, import.meta.url).href
}
