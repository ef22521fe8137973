// Serves the fixture over HTTP, on any free port or the given one, and says where: the suite can then be pointed at it by hand.
import { serve } from 'mcp-rally/node'
import { conformanceApp } from './fixture/app.mjs'

const { url } = await serve(conformanceApp(), { port: Number(process.argv[2] ?? 0) })
console.log(`listening on ${url}`)
