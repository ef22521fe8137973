// Serves the app of the contract suite over the standard streams of a process.
import { stdio } from 'mcp-rally/node'
import { contractApp } from './app.mjs'

await stdio(contractApp())
