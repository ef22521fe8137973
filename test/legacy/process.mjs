// Serves the app over the standard streams.
import { stdio } from 'mcp-rally/node'
import { olderApp } from './app.mjs'

await stdio(olderApp())
