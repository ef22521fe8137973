// The server and the client under test, each as a process of its own on the project's Node.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Resolves once it listens. */
export async function startServer() {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'server.mjs')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log += text
  })
  const ended = once(child, 'close')
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), ended])
  const url = /^listening on (\S+)$/.exec(String(line))?.[1]
  if (url === undefined) throw new Error(`The server did not start.\n${log}`)
  return {
    url,
    log: () => log,
    stop: async () => {
      child.kill()
      await ended
    },
  }
}

/** Run by a shell, with the address of a scenario's server behind it. */
export function clientCommand() {
  return `"${process.execPath}" "${join(import.meta.dirname, 'client.mjs')}"`
}
