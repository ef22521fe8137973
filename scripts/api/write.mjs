// Writes the API reference to dist-api/, as Markdown, from the doc comments of what the entries of package.json export.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Application } from 'typedoc'

const root = join(import.meta.dirname, '../..')
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const entries = Object.values(exports).flatMap(
  ({ types }) => types?.replace(/^\.\/dist\/(.*)\.d\.ts$/, 'src/$1.ts') ?? [],
)

const app = await Application.bootstrapWithPlugins({
  plugin: ['typedoc-plugin-markdown'],
  name: 'mcp-rally',
  entryPoints: entries.map((entry) => join(root, entry)),
  tsconfig: join(root, 'tsconfig.build.json'),
  basePath: root,
  readme: 'none',
  // Types are checked by the compiler of this repository, which is a newer one.
  skipErrorChecking: true,
  excludePrivate: true,
  excludeInternal: true,
  excludeExternals: true,
  disableSources: true,
  out: join(root, 'dist-api'),
  hidePageHeader: true,
  useCodeBlocks: true,
  validation: { notExported: false, invalidLink: true, notDocumented: false },
})
const project = await app.convert()
if (project === undefined || app.logger.hasErrors()) process.exit(1)
await app.generateOutputs(project)
if (app.logger.hasErrors()) process.exit(1)
console.log('The API reference is in dist-api/.')
