// `npm run model`: bundles the model with the source as it is, and starts it. Node 20 does not run TypeScript by itself.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'

const root = join(import.meta.dirname, '../..')
// In the project, so that packages are found from there. Each run has its own: two may run at once.
const made = mkdtempSync(join(root, 'dist-model-'))
process.on('exit', () => rmSync(made, { recursive: true, force: true }))

const entries = ['index', 'node', 'client', 'bearer', 'sqlite', 'postgres', 'testing']
const alias = Object.fromEntries(
  entries.map((name) => [name === 'index' ? 'mcp-rally$' : `mcp-rally/${name}`, join(root, `src/${name}.ts`)]),
)
// `imports` of package.json, as in vitest.config.ts.
alias['#json-schema-libraries'] = join(root, 'src/schema/libraries/node.cjs')
alias['#http-client'] = join(root, 'src/client/transports/http-node.ts')
alias['#stdio-transport'] = join(root, 'src/client/transports/stdio.ts')
const bundle = await rolldown({
  input: {
    command: join(import.meta.dirname, 'command.ts'),
  },
  platform: 'node',
  external: /^(?!mcp-rally)[a-z@]/,
  resolve: { alias },
  tsconfig: false,
})
await bundle.write({ dir: made, format: 'esm', sourcemap: true })
await bundle.close()

const { main } = await import(pathToFileURL(join(made, 'command.js')).href)
process.exitCode = await main(process.argv.slice(2))
