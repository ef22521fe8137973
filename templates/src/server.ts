import { serve } from 'mcp-rally/node'
import { app } from './app.ts'

const { url } = await serve(app, { port: Number(process.env['PORT'] ?? 3000) })
console.log(`Listening on ${url}`)
