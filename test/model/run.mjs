// `npm run model`: bundles the model with the source as it is, and starts it.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bundle } from '../bundle.mjs'

const folder = await bundle('model', { command: join(import.meta.dirname, 'command.ts') })
const { main } = await import(pathToFileURL(join(folder, 'command.js')).href)
process.exitCode = await main(process.argv.slice(2))
