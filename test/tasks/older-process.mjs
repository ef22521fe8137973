// Serves the tools over standard streams.
import { stdio } from 'mcp-rally/node'
import { olderTasksApp } from './older-app.mjs'

await stdio(olderTasksApp())
