// Debian's chromium: the client in a page, against servers on another origin.
import type { ChildProcess } from 'node:child_process'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { promisify } from 'node:util'
import * as esbuild from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Consumer } from '../package/consumer.ts'
import { APP, CLIENT, clientContract } from './contract.ts'
import { answering, freePort, killed } from './processes.ts'
import { CHROMIUM } from './table.ts'

/** Calls what the address of the page says, and reports what came of it to where the page is from. */
const PAGE = `
  import { connect } from 'mcp-rally/client'
  import { callAll } from './client.mjs'
  const [, run, server] = location.hash.split('|')
  const runs = {
    callAll,
    async subscribe(url) {
      const client = await connect(url)
      const changes = client.subscribe({ uris: ['config://app'] })
      const seen = [(await changes.next()).value.type]
      await client.callTool('change', {})
      seen.push((await changes.next()).value.type)
      await changes.return()
      await client.close()
      return seen
    },
  }
  const body = await runs[run](server).catch(({ code, message }) => ({ code, message }))
  await fetch('/seen', { method: 'POST', body: JSON.stringify(body) })
`

/** Serves the app to pages of the origin that its last argument names. */
const NODE_HOST = `
  import { serve } from 'mcp-rally/node'
  import { app } from './app.mjs'
  const [port, origin] = process.argv.slice(2)
  await serve(app, { port: Number(port), allowedOrigins: [origin] })
`
const FETCH_HOST = `
  import { H3, serve } from 'h3'
  import { app } from './app.mjs'
  const server = new H3().all('/mcp', ({ req }) => app.fetch(req))
  serve(server, { port: process.argv[2], hostname: '127.0.0.1', silent: true })
`

let consumer: Consumer
let chromium: ChildProcess | undefined
let onSeen: (seen: unknown) => void = () => {}

/** Serves the page, and takes what it has seen. */
const site = createServer((request, response) => {
  if (request.method === 'POST') {
    void json(request).then((seen) => onSeen(seen))
    response.end()
  } else if (request.url === '/page.js') {
    response.setHeader('Content-Type', 'text/javascript').end(bundle)
  } else {
    response.setHeader('Content-Type', 'text/html').end('<!doctype html><script type="module" src="page.js"></script>')
  }
})
let bundle: Uint8Array = new Uint8Array()
let origin = ''

beforeAll(async () => {
  consumer = await Consumer.install(['zod'], { folder: import.meta.dirname, names: ['h3'] })
  await consumer.write({ 'client.mjs': CLIENT, 'page.mjs': PAGE, 'serve.mjs': NODE_HOST, 'fetch.mjs': FETCH_HOST })
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(consumer.folder, 'page.mjs')],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
    tsconfigRaw: '{}',
    logLevel: 'warning',
  })
  bundle = outputFiles[0]?.contents ?? bundle
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  origin = `http://localhost:${(site.address() as AddressInfo).port}`
  await consumer.write({ 'app.mjs': APP.replace('http: {', `http: { allowedOrigins: ['${origin}'],`) })
}, 60_000)
afterAll(async () => {
  site.close()
  await consumer.remove()
})

/** Opens the page in a browser of its own, and returns what it has seen. */
async function inBrowser(run: string, server: string): Promise<unknown> {
  const profile = join(consumer.folder, 'profile')
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--user-data-dir=${profile}`]
  chromium = spawn('chromium', [...flags, `${origin}/#|${run}|${server}`], { stdio: 'ignore' })
  try {
    const failed = once(chromium, 'exit').then(([code]) => Promise.reject(new Error(`chromium ended with ${code}.`)))
    return await Promise.race([new Promise((resolve) => (onSeen = resolve)), failed])
  } finally {
    await killed(chromium)
  }
}

test('it is the version that the docs name, or a later one', async () => {
  const { stdout } = await promisify(execFile)('chromium', ['--version'])
  expect(Number(/Chromium (\d+)/.exec(stdout)?.[1])).toBeGreaterThanOrEqual(CHROMIUM)
})

describe.each([
  { host: 'serve', file: 'serve.mjs' },
  { host: 'app.fetch', file: 'fetch.mjs' },
])('a page of another origin than that of $host', ({ host, file }) => {
  let server: ChildProcess | undefined
  let url = ''

  beforeAll(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}/mcp`
    server = spawn(process.execPath, [file, String(port), origin], { cwd: consumer.folder, stdio: 'inherit' })
    await answering(url)
  }, 60_000)
  afterAll(() => killed(server))

  clientContract(
    `Chromium, of ${host},`,
    (at) => inBrowser('callAll', at),
    () => url,
  )

  test('receives the changes that it subscribed to', async () => {
    expect(await inBrowser('subscribe', url)).toEqual(['acknowledged', 'updated'])
  })
})

test('a page of an origin that is not named learns what may be wrong', async () => {
  const port = await freePort()
  const server = spawn(process.execPath, ['serve.mjs', String(port), 'https://other.example'], { cwd: consumer.folder })
  try {
    await answering(`http://127.0.0.1:${port}/mcp`)
    expect(await inBrowser('callAll', `http://127.0.0.1:${port}/mcp`)).toEqual({
      code: 'LOST',
      message: `The response was lost: Failed to fetch. Either http://127.0.0.1:${port} does not answer, or it does not allow pages of ${origin} (\`allowedOrigins\` of a Rally server). The request may or may not have taken effect.`,
    })
  } finally {
    await killed(server)
  }
})
