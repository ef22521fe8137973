// `npm run fuzz`: bundles the harness with the source as it is, and starts it.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bundle } from '../bundle.mjs'

const harness = join(import.meta.dirname, 'harness')
const folder = await bundle('fuzz', { command: join(harness, 'command.ts'), child: join(harness, 'child.ts') })
const { main } = await import(pathToFileURL(join(folder, 'command.js')).href)
process.exitCode = await main(process.argv.slice(2), { child: join(folder, 'child.js'), folder: import.meta.dirname })
