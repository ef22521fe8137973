// Our server as a process: over HTTP, or with --stdio over its standard streams.
import { serve, stdio } from 'mcp-rally/node'
import { matrixApp } from './handlers.mjs'

const app = await matrixApp()
if (process.argv.includes('--stdio')) {
  await stdio(app)
} else {
  const { url } = await serve(app, { port: 0 })
  console.log(`listening on ${url}`)
}
