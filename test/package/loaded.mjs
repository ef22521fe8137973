// Preloaded into a process under test: says at its end, as one line of JSON on the error stream, which modules it loaded.
import { createRequire, register } from 'node:module'
import { receiveMessageOnPort, MessageChannel } from 'node:worker_threads'

const { port1: here, port2: there } = new MessageChannel()
here.unref()
const hooks = `
  let port
  export function initialize(given) { port = given }
  export async function load(url, context, next) {
    port.postMessage(url)
    return next(url, context)
  }
`
register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: there, transferList: [there] })

process.on('exit', () => {
  const imported = []
  for (let said = receiveMessageOnPort(here); said; said = receiveMessageOnPort(here)) imported.push(said.message)
  const required = Object.keys(createRequire(import.meta.url).cache)
  const builtin = process.moduleLoadList.flatMap((entry) => /^NativeModule (?!internal\/)(.*)/.exec(entry)?.[1] ?? [])
  console.error(JSON.stringify({ imported, required, builtin }))
})
