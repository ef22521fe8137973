// Cloudflare Workers: workerd itself, with a bundle as wrangler makes it.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import * as esbuild from 'esbuild'
import { afterAll, beforeAll, describe } from 'vitest'
import { Consumer } from '../package/consumer.ts'
import { APP, CLIENT, clientContract, hostContract } from './contract.ts'
import { answering, freePort, killed } from './processes.ts'

/** The package has no types. */
const { default: workerd } = createRequire(import.meta.url)('workerd') as { default: string }

const WORKER = `
  import { app } from './app.mjs'
  import { callAll } from './client.mjs'
  export default {
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      return pathname === '/client' ? Response.json(await callAll(searchParams.get('server'))) : app.fetch(request)
    },
  }
`

const config = (port: number): string => `
  using Workerd = import "/workerd/workerd.capnp";
  const config :Workerd.Config = (
    services = [
      (name = "main", worker = .main),
      (name = "internet", network = (allow = ["private", "local"])),
    ],
    sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
  );
  const main :Workerd.Worker = (
    modules = [(name = "worker", esModule = embed "bundle.js")],
    compatibilityDate = "2026-04-01",
    compatibilityFlags = ["nodejs_compat"],
  );
`

describe('Cloudflare Workers', () => {
  let consumer: Consumer
  let worker: ChildProcess
  let origin = ''

  beforeAll(async () => {
    consumer = await Consumer.install(['zod'])
    const port = await freePort()
    origin = `http://127.0.0.1:${port}`
    await consumer.write({ 'app.mjs': APP, 'client.mjs': CLIENT, 'worker.mjs': WORKER, 'worker.capnp': config(port) })
    await esbuild.build({
      entryPoints: [join(consumer.folder, 'worker.mjs')],
      outfile: join(consumer.folder, 'bundle.js'),
      bundle: true,
      format: 'esm',
      conditions: ['workerd', 'worker', 'browser'],
      external: ['node:*'],
      tsconfigRaw: '{}',
      logLevel: 'warning',
    })
    worker = spawn(workerd, ['serve', 'worker.capnp'], {
      cwd: consumer.folder,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    await answering(origin)
  }, 60_000)
  afterAll(async () => {
    await killed(worker)
    await consumer.remove()
  })

  hostContract('workerd', async () => ({ url: `${origin}/mcp`, stop: async () => {} }))

  clientContract(
    'workerd',
    async (url) => (await fetch(`${origin}/client?server=${encodeURIComponent(url)}`)).json(),
    () => `${origin}/mcp`,
  )
})
