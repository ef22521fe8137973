// A hostile server, over HTTP or with --stdio over its standard streams: a call of a tool makes it do what the tool is named
// for, and `ping` is answered as it should be. What discovery and the list of tools give is chosen by `--mode`, or over HTTP
// by the address.
import { DISCOVERIES, LISTS, RESULTS } from './results.mjs'
import { serveHttp } from './server-http.mjs'
import { serveStdio } from './server-stdio.mjs'

/** The JSON text of a response, or nothing where the wire has its own way to misbehave. */
function answer({ id, method, params }, mode) {
  if (method === 'initialize') return `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"No such method"}}`
  const result = resultOf(method, params, mode)
  if (result === undefined) return undefined
  return `{"jsonrpc":"2.0","id":${id},"result":${typeof result === 'string' ? result : JSON.stringify(result)}}`
}

function resultOf(method, params, mode) {
  switch (method) {
    case 'server/discover':
      return (DISCOVERIES[mode] ?? DISCOVERIES.fine)(params)
    case 'tools/list':
      return (LISTS[mode] ?? LISTS.fine)(params)
    case 'tools/call':
      return RESULTS[params.name]?.(params)
    default:
      return undefined
  }
}

if (process.argv.includes('--stdio')) serveStdio(answer, process.argv.at(-1))
else serveHttp(answer)
