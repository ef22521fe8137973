// Bundles a command that is written in TypeScript with the source as it is. Node 20 does not run TypeScript by itself.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { pages } from '../scripts/pages.mjs'

const root = join(import.meta.dirname, '..')
const ENTRIES = ['index', 'node', 'client', 'bearer', 'sqlite', 'postgres', 'testing']

/** `input` has the entries by their names. Returns the folder of the bundle, which is removed when the process exits. */
export async function bundle(name, input) {
  // In the project, so that packages are found from there. Each run has its own: two may run at once.
  const folder = mkdtempSync(join(root, `dist-${name}-`))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const alias = Object.fromEntries(
    ENTRIES.map((entry) => [entry === 'index' ? 'mcp-rally$' : `mcp-rally/${entry}`, join(root, `src/${entry}.ts`)]),
  )
  // `imports` of package.json, as in vitest.config.ts.
  alias['#json-schema-libraries'] = join(root, 'src/schema/libraries/node.cjs')
  alias['#http-client'] = join(root, 'src/client/transports/http-node.ts')
  alias['#stdio-transport'] = join(root, 'src/client/transports/stdio.ts')
  alias['#libsql'] = join(root, 'src/store/sqlite/libsql.cjs')
  const external = /^(?!mcp-rally)[a-z@]/
  const made = await rolldown({
    input,
    plugins: [pages],
    platform: 'node',
    external,
    resolve: { alias },
    tsconfig: false,
  })
  await made.write({ dir: folder, format: 'esm', sourcemap: true })
  await made.close()
  return folder
}
