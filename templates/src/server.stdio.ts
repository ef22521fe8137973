// Standard output carries the protocol: never write to it. console.error is fine.
import { stdio } from 'mcp-rally/node'
import { app } from './app.ts'

await stdio(app)
