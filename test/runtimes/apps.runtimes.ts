// The page of questions in Debian's chromium, on the reference host of MCP Apps: the built package serves it, a sandbox of another
// origin shows it under the default policy of the specification, and a user answers.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import axe from 'axe-core'
import * as esbuild from 'esbuild'
import type { Browser, Locator, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { answering, freePort, killed } from './processes.ts'

const ROOT = join(import.meta.dirname, '../..')
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; media-src 'self' data:; connect-src 'none'"

const HOST = `<!doctype html><html lang="en"><meta charset="utf-8"><title>starting</title><style>
  body { margin: 0; background: light-dark(#faf9f5, #262624) } #log { width: 640px; margin: 16px auto }
  iframe { width: 640px; height: 40px; border: 1px solid light-dark(#d1cfc5, #55544f); border-radius: 12px; display: block; margin-bottom: 8px }
</style><div id="log"></div><script type="module" src="/host.js"></script>`

/** Passes messages between the host and the page, which is in a frame of its own. */
const PROXY = `<!doctype html><meta charset="utf-8"><style>html, body { margin: 0; height: 100% } iframe { border: 0; width: 100%; height: 100% }</style><body><script>
  const inner = document.createElement('iframe')
  inner.title = 'page'
  inner.setAttribute('sandbox', new URL(location).searchParams.get('sandbox'))
  document.body.append(inner)
  addEventListener('message', ({ source, data }) => {
    if (source === inner.contentWindow) parent.postMessage(data, '*')
    else if (data?.method === 'ui/notifications/sandbox-resource-ready') inner.srcdoc = data.params.html
    else inner.contentWindow.postMessage(data, '*')
  })
  parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} }, '*')
</script>`

let folder: string
let server: ChildProcess | undefined
let port: number
let browser: Browser
let script = ''
let page: Page
const problems: string[] = []

const hostSite = createServer((request, response) => {
  if (request.url === '/host.js') return void response.setHeader('Content-Type', 'text/javascript').end(script)
  if (!request.url?.startsWith('/mcp')) return void response.setHeader('Content-Type', 'text/html').end(HOST)
  const { origin: _origin, referer: _referer, ...headers } = request.headers
  const options = {
    host: '127.0.0.1',
    port,
    path: '/mcp',
    method: request.method,
    headers: { ...headers, host: `127.0.0.1:${port}` },
  }
  const upstream = forward(options, (incoming) => {
    response.writeHead(incoming.statusCode ?? 500, incoming.headers)
    incoming.pipe(response)
  })
  upstream.on('error', () => response.destroy())
  request.pipe(upstream)
})
const proxySite = createServer(((_request, response) => {
  response.setHeader('Content-Security-Policy', POLICY).setHeader('Content-Type', 'text/html').end(PROXY)
}) satisfies RequestListener)

const addressOf = (site: typeof hostSite, name: string): string =>
  `http://${name}:${(site.address() as AddressInfo).port}/`

async function startServer(): Promise<void> {
  server = spawn(process.execPath, [join(folder, 'server.js'), String(port), join(folder, 'apps.db')], {
    stdio: 'inherit',
  })
  await answering(`http://127.0.0.1:${port}/mcp`)
}

beforeAll(async () => {
  folder = await mkdtemp(join(ROOT, 'dist-apps-'))
  port = await freePort()
  const shared = { bundle: true, format: 'esm', target: 'es2022', logLevel: 'warning', tsconfigRaw: '{}' } as const
  const [host] = await Promise.all([
    esbuild.build({
      ...shared,
      entryPoints: [join(ROOT, 'test/apps/host/page.mjs')],
      platform: 'browser',
      write: false,
    }),
    esbuild.build({
      ...shared,
      entryPoints: [join(ROOT, 'test/apps/host/server.ts')],
      platform: 'node',
      packages: 'external',
      outdir: folder,
    }),
  ])
  script = host.outputFiles[0]?.text ?? ''
  hostSite.listen(0, '127.0.0.1')
  proxySite.listen(0, '127.0.0.1')
  await Promise.all([once(hostSite, 'listening'), once(proxySite, 'listening'), startServer()])
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
}, 120_000)

afterAll(async () => {
  await browser?.close()
  await killed(server)
  hostSite.close()
  hostSite.closeAllConnections()
  proxySite.close()
  proxySite.closeAllConnections()
  await rm(folder, { recursive: true, force: true })
})

afterEach(async () => {
  await page.close()
  const found = problems.splice(0)
  if (found.length > 0) throw new Error(`The page logged errors: ${found.join('; ')}`)
})

/** Opens the host in a page of the browser. */
async function openHost(query = '', height = 900): Promise<void> {
  page = await browser.newPage({ viewport: { width: 700, height } })
  page.setDefaultTimeout(10_000)
  page.on('pageerror', ({ message }) => problems.push(message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of (4|5)\d\d|ERR_/.test(message.text())) problems.push(message.text())
  })
  await page.goto(
    `${addressOf(hostSite, '127.0.0.1')}?proxy=${encodeURIComponent(addressOf(proxySite, 'localhost'))}&${query}`,
  )
  await page.waitForFunction("document.title === 'ready'", undefined, { timeout: 30_000 })
}

/** The model calls a tool. */
async function call(
  name: string,
  args: object = {},
): Promise<{ content: { text: string }[]; structuredContent?: unknown }> {
  const run = `host.call(${JSON.stringify(name)}, ${JSON.stringify(args)})`
  return page.evaluate(run)
}

const inHost = (run: string): Promise<unknown> => page.evaluate(`Promise.resolve(host.${run}).then(() => {})`)
const seen = (): Promise<Record<string, unknown>[]> => page.evaluate('host.seen')
const form = (nth = 0): Locator => page.frameLocator(`iframe.app >> nth=${nth}`).frameLocator('iframe').locator('main')
const press = (name: string, nth = 0): Promise<void> => form(nth).getByRole('button', { name, exact: true }).click()
const choose = (name: string, nth = 0): Promise<void> => form(nth).getByRole('radio', { name, exact: true }).check()
const says = (text: string | RegExp, nth = 0): Promise<void> => form(nth).getByText(text).first().waitFor()

/** What axe finds wrong in the page. */
async function violations(): Promise<string[]> {
  const frame = page
    .frames()
    .find((each) => each.parentFrame()?.parentFrame() !== undefined && each.parentFrame()?.parentFrame() !== null)
  await frame?.evaluate(axe.source)
  return (
    (await frame?.evaluate(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))',
    )) ?? ['no frame']
  )
}

/** Pictures for the docs, where RALLY_PICTURES names a folder. */
async function picture(name: string): Promise<void> {
  const { RALLY_PICTURES: to } = process.env
  if (to !== undefined)
    await page
      .locator('iframe.app')
      .first()
      .screenshot({ path: join(to, `${name}.png`) })
}

const background = (): Promise<string> => form().evaluate('getComputedStyle(document.documentElement).backgroundColor')

const toBeDone = 'deploy is done.'

describe.each(['newest', 'older'])('with the %s revision', (revision) => {
  test('two rounds, and the model that waits gets the result', async () => {
    await openHost(`revision=${revision}`)
    const { content } = await call('deploy', { env: 'prod' })
    await says(/^Deploy c0ffee\d to prod\?$/)
    expect(await violations()).toEqual([])
    await picture('apps-question-light')
    const [, id = ''] = /id "([^"]+)"/.exec(content[0]?.text ?? '') ?? []
    const waiting = call('rally_result', { id })
    await press('Send')
    await says('Please answer this.')
    await choose('Yes')
    await form().getByLabel('Note for the log (optional)').fill('from the form')
    await press('Send')
    await says('(note: from the form)')
    await choose('us-east')
    await press('Send')
    await says(toBeDone)
    expect((await waiting).structuredContent).toMatchObject({ region: 'us-east' })
    // The model was waiting, so nothing else is said to it.
    expect(JSON.stringify(await seen())).not.toMatch(/"message"|"context"|rally_answer|as1\./)
  })

  test('a task is followed and answered', async () => {
    await openHost(`revision=${revision}&theme=dark`)
    await call('provision', { name: 'web' })
    await choose('Yes')
    await press('Send')
    await says('Where should web run?')
    await choose('us-east')
    await press('Send')
    await says('web runs in us-east.')
  })
})

test('every kind of field, in the dark, with errors beside them and by keyboard', async () => {
  await openHost('revision=newest&theme=dark', 1500)
  await call('everything')
  const field = (name: string): Locator => form().getByLabel(name, { exact: true })
  await says('Please fill in all of this <b>carefully</b>.')
  await press('Send')
  await expect.poll(() => form().getByText('Please answer this.').count(), { timeout: 10_000 }).toBe(4)
  expect(await form().locator(':focus').count()).toBe(1)
  await field('Name').fill('A')
  await field('E-mail').fill('not one')
  await field('Count').fill('12')
  await press('Send')
  await says('At least 2 characters.')
  expect(await field('E-mail').getAttribute('aria-invalid')).toBe('true')
  expect(await violations()).toEqual([])
  await picture('apps-fields-dark')
  await field('Name').fill('Ann')
  await field('E-mail').fill('ann@example.org')
  await field('Web site (optional)').fill('https://example.org/')
  await field('Count').fill('4')
  await field('Ratio (optional)').fill('0.25')
  await form().getByRole('radiogroup', { name: 'I agree' }).getByLabel('Yes').check()
  await field('City').selectOption('Cph')
  await field('Parking').check()
  await field('Name').press('Enter')
  await says('everything is done.')
  expect(JSON.parse((await form().locator('p').first().textContent()) ?? '')).toEqual({
    name: 'Ann',
    email: 'ann@example.org',
    site: 'https://example.org/',
    day: '2026-12-24',
    at: '2026-12-24T18:00:00.000Z',
    count: 4,
    ratio: 0.25,
    news: false,
    agree: true,
    size: 'm',
    city: 'Cph',
    extras: ['wifi', 'park'],
  })
})

test('three questions at once, one of them declined', async () => {
  await openHost()
  await call('trip')
  await says('Where would you like to go?')
  await picture('apps-three-light')
  expect(await violations()).toEqual([])
  await form().getByLabel('city').fill('Oslo')
  await choose('a family')
  await form().getByRole('checkbox', { name: 'Decline this question' }).nth(2).check()
  await press('Send')
  await says('a family to Oslo, some other way')
})

test('a question is declined', async () => {
  await openHost()
  await call('deploy', { env: 'prod' })
  await press('Decline')
  await says('deploy ended with an error.')
})

/** Answers three questions at once. */
async function answer(): Promise<void> {
  await call('trip')
  await form().getByLabel('city').fill('Oslo')
  await choose('two')
  await choose('No')
  await press('Send')
  await says('two to Oslo, some other way')
}

describe('the model hears of the result', () => {
  test('by its context and by a message, and once only', async () => {
    await openHost()
    await answer()
    await expect
      .poll(async () => (await seen()).map((each) => Object.keys(each)[0]))
      .toEqual(['result', 'context', 'message'])
    await inHost('reopen()')
    await says('two to Oslo, some other way')
    expect(await seen()).toHaveLength(3)
  })

  test.each(['context', 'message'])('where the host has no way by %s', async (lost) => {
    await openHost(`lost=${lost}`)
    await answer()
    const other = lost === 'context' ? 'message' : 'context'
    await expect
      .poll(async () => (await seen()).map((each) => Object.keys(each)[0]), { timeout: 10_000 })
      .toEqual(['result', other])
  })

  test('from the user, where the host has no way at all', async () => {
    await openHost('lost=context&lost=message')
    await answer()
    await says('Tell the assistant that you have answered.')
  })

  test.each(['_meta', 'structuredContent'])('where the host loses %s', async (lost) => {
    await openHost(`lost=${lost}`)
    await answer()
  })
})

test('a page that is closed and opened again shows the current round, then the end', async () => {
  await openHost()
  await call('deploy', { env: 'prod' })
  await choose('Yes')
  await press('Send')
  await says(/Where should/)
  await inHost('reopen()')
  await says(/Where should/)
  await choose('eu-north')
  await press('Send')
  await says(toBeDone)
  await inHost('reopen()')
  await says(toBeDone)
})

test('the second of two windows shows what the first one did', async () => {
  await openHost()
  await call('deploy', { env: 'prod' })
  await choose('Yes')
  await inHost('open()')
  await choose('No', 1)
  await press('Send', 1)
  await says(toBeDone, 1)
  await press('Send')
  await says(toBeDone)
  expect(await form().locator('p').first().textContent()).toContain('none')
})

test('a server that is killed between the rounds', async () => {
  await openHost('revision=newest')
  await call('deploy', { env: 'prod' })
  await choose('Yes')
  await killed(server)
  await press('Send')
  await says(/That did not work/)
  await startServer()
  await press('Send')
  await says(/Where should/)
  await killed(server)
  await startServer()
  await choose('us-east')
  await press('Send')
  await says(toBeDone)
})

test('a visit shows the whole address, opens it, and is asked again until it is done', async () => {
  await openHost('theme=dark')
  await call('connect')
  await says('https://bank.example/authorize?account=1')
  expect(await violations()).toEqual([])
  await picture('apps-visit-dark')
  await press('Open bank.example')
  await expect
    .poll(async () => (await seen()).at(-1), { timeout: 10_000 })
    .toEqual({ opened: 'https://bank.example/authorize?account=1' })
  await press('I have done this')
  await says(/has not been completed yet/)
  server?.kill('SIGUSR2')
  await press('I have done this')
  await says('Connected.')
})

test('a call that asked nothing closes its page', async () => {
  await openHost()
  await call('pay', { amount: 5 })
  await expect.poll(() => page.locator('iframe.app').count(), { timeout: 10_000 }).toBe(0)
})

test('the theme changes while the page is open', async () => {
  await openHost()
  await call('deploy', { env: 'prod' })
  await says(/Deploy/)
  const light = await background()
  await inHost("setTheme('dark')")
  await expect.poll(background, { timeout: 10_000 }).not.toBe(light)
})

test('a sandbox that allows forms and its own origin', async () => {
  await openHost(`sandbox=${encodeURIComponent('allow-scripts allow-same-origin allow-forms')}`)
  await call('pay', { amount: 500 })
  await choose('Yes')
  await press('Send')
  await says('Paid 500.')
})

test('the model has no way to the tool of the page', async () => {
  await openHost()
  await expect(call('rally_answer')).rejects.toThrow('The model has no tool rally_answer')
})

test('the page is 12 kB at most', async () => {
  await openHost('revision=newest')
  const size = await page.evaluate(`host.pageSize()`)
  expect(size).toBeLessThanOrEqual(12_000)
})
