// The page by a link in Debian's chromium: the built package serves it from a process of its own, a client with nothing gets the
// link, and a user who is logged in answers.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import axe from 'axe-core'
import * as esbuild from 'esbuild'
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { linkIn } from '../apps/visitor.ts'
import { answering, freePort, killed } from './processes.ts'

const ROOT = join(import.meta.dirname, '../..')

vi.setConfig({ testTimeout: 120_000 })

let folder: string
let server: ChildProcess | undefined
let port: number
let browser: Browser
let context: BrowserContext
let page: Page
const clients: Client[] = []
const problems: string[] = []

async function startServer(): Promise<void> {
  server = spawn(process.execPath, [join(folder, 'linked-server.js'), String(port), join(folder, 'page.db')], {
    stdio: 'inherit',
  })
  await answering(`http://127.0.0.1:${port}/mcp`)
}

beforeAll(async () => {
  folder = await mkdtemp(join(ROOT, 'dist-page-'))
  port = await freePort()
  await esbuild.build({
    entryPoints: [join(ROOT, 'test/apps/host/linked-server.ts')],
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    tsconfigRaw: '{}',
    outdir: folder,
  })
  await startServer()
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
}, 120_000)

afterAll(async () => {
  await browser?.close()
  await killed(server)
  await rm(folder, { recursive: true, force: true })
})

afterEach(async () => {
  await context?.close()
  await Promise.all(clients.splice(0).map((client) => client.close()))
  const found = problems.splice(0)
  if (found.length > 0) throw new Error(`The page logged errors: ${found.join('; ')}`)
})

/** A client with nothing, whose user is ann. */
async function connect(mode: 'auto' | 'legacy' = 'auto'): Promise<Client> {
  const client = new Client({ name: 'nothing', version: '1' }, { capabilities: {}, versionNegotiation: { mode } })
  const headers = { Authorization: 'Bearer ann' }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), { requestInit: { headers } }),
  )
  clients.push(client)
  await client.listTools()
  return client
}

interface OpenOptions {
  readonly user?: string
  readonly scheme?: 'light' | 'dark'
  readonly height?: number
}

/** Opens a link in the browser of this user. */
async function open(link: string, { user = 'ann', scheme = 'light', height = 460 }: OpenOptions = {}): Promise<void> {
  context = await browser.newContext({ colorScheme: scheme, viewport: { width: 700, height } })
  await context.addCookies([{ name: 'user', value: user, url: `http://127.0.0.1:${port}` }])
  page = await openTab(link)
}

async function openTab(link: string): Promise<Page> {
  const tab = await context.newPage()
  tab.setDefaultTimeout(10_000)
  tab.on('pageerror', ({ message }) => problems.push(message))
  tab.on('console', (message) => {
    if (message.type() === 'error' && !/status of (4|5)\d\d|ERR_/.test(message.text())) problems.push(message.text())
  })
  await tab.goto(link)
  return tab
}

async function begin(
  tool: string,
  args: object = {},
  options: OpenOptions = {},
): Promise<{ client: Client; id: string }> {
  const client = await connect()
  const link = linkIn(await client.callTool({ name: tool, arguments: { ...args } }))
  await open(link, options)
  return { client, id: new URL(link).searchParams.get('call') ?? '' }
}

/** Waits as a model does, that calls again as long as it is told to. */
async function result(client: Client, id: string): ReturnType<Client['callTool']> {
  for (;;) {
    const said = await client.callTool({ name: 'rally_result', arguments: { id } })
    if (!JSON.stringify(said.content).includes('Still waiting')) return said
  }
}

const form = (): Locator => page.locator('main')
const press = (name: string): Promise<void> => form().getByRole('button', { name, exact: true }).click()
const choose = (name: string): Promise<void> => form().getByRole('radio', { name, exact: true }).check()
const says = (text: string | RegExp): Promise<void> => form().getByText(text).first().waitFor()

async function violations(): Promise<string[]> {
  // The policy of the page lets no script in but its own, so axe comes from outside of it.
  const found = await page.evaluate(
    `(() => { ${axe.source}; return axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html)) })()`,
  )
  return found as string[]
}

/** Pictures for the docs, where RALLY_PICTURES names a folder. */
async function picture(name: string): Promise<void> {
  const { RALLY_PICTURES: to } = process.env
  if (to !== undefined) await form().screenshot({ path: join(to, `${name}.png`) })
}

describe.each(['auto', 'legacy'] as const)('a client in mode %s', (mode) => {
  test('two rounds, and the model that waits gets the result', async () => {
    const client = await connect(mode)
    const link = linkIn(await client.callTool({ name: 'deploy', arguments: { env: 'prod' } }))
    const id = new URL(link).searchParams.get('call') ?? ''
    const waiting = result(client, id)
    await open(link)
    await says(/^Deploy c0ffee\d+ to prod\?$/)
    expect(await violations()).toEqual([])
    await picture('page-question-light')
    await press('Send')
    await says('Please answer this.')
    await choose('Yes')
    await form().getByLabel('Note for the log (optional)').fill('from the page')
    await press('Send')
    await says('(note: from the page)')
    await choose('us-east')
    await press('Send')
    await says('deploy is done.')
    expect((await waiting).structuredContent).toMatchObject({ region: 'us-east' })
  })
})

test('every kind of field in the dark, with errors of the page and of the server beside them', async () => {
  await begin('everything', {}, { scheme: 'dark', height: 1400 })
  const field = (name: string): Locator => form().getByLabel(name, { exact: true })
  await says('Please fill in all of this <b>carefully</b>.')
  await press('Send')
  await expect.poll(() => form().getByText('Please answer this.').count(), { timeout: 10_000 }).toBe(4)
  await field('Name').fill('A')
  await press('Send')
  await says('At least 2 characters.')
  expect(await violations()).toEqual([])
  await picture('page-fields-dark')
  // Two characters for the browser, and one for the server.
  await field('Name').fill('😀')
  await field('E-mail').fill('ann@example.org')
  await field('Count').fill('4')
  await form().getByRole('radiogroup', { name: 'I agree' }).getByLabel('Yes').check()
  await field('City').selectOption('Cph')
  await press('Send')
  await says('Must have at least 2 characters')
  expect(await violations()).toEqual([])
  expect(await field('Name').getAttribute('aria-invalid')).toBe('true')
  expect(await form().locator(':focus').inputValue()).toBe('😀')
  expect(await field('E-mail').inputValue()).toBe('ann@example.org')
  await field('Name').fill('Ann')
  await field('Name').press('Enter')
  await says('everything is done.')
  expect(JSON.parse((await form().locator('p').first().textContent()) ?? '')).toMatchObject({
    name: 'Ann',
    email: 'ann@example.org',
    count: 4,
    city: 'Cph',
  })
})

test('three questions at once, one of them declined, and the user is told to go back', async () => {
  await begin('trip')
  await form().getByLabel('city').fill('Oslo')
  await choose('a family')
  await form().getByRole('checkbox', { name: 'Decline this question' }).nth(2).check()
  expect(await violations()).toEqual([])
  await press('Send')
  await says('a family to Oslo, some other way')
  await says('Tell the assistant that you have answered.')
})

test('a question is declined', async () => {
  await begin('deploy', { env: 'prod' })
  await press('Decline')
  await says('deploy ended with an error.')
})

test('a reload shows the current round, and the second of two windows what the first one did', async () => {
  await begin('deploy', { env: 'prod' })
  const link = page.url()
  await choose('Yes')
  await press('Send')
  await says(/Where should/)
  await page.reload()
  await says(/Where should/)
  const first = page
  const second = await openTab(link)
  await second.getByRole('radio', { name: 'eu-north', exact: true }).check()
  await second.getByRole('button', { name: 'Send', exact: true }).click()
  await second.getByRole('heading', { name: 'deploy is done.' }).waitFor()
  page = first
  await choose('us-east')
  await press('Send')
  await says('deploy is done.')
  expect(await form().locator('p').first().textContent()).toContain('eu-north')
})

test('a server that is killed between the rounds', async () => {
  await begin('deploy', { env: 'prod' })
  await choose('Yes')
  await killed(server)
  await press('Send')
  await says(/That did not work/)
  await startServer()
  await press('Send')
  await says(/Where should/)
  await choose('us-east')
  await press('Send')
  await says('deploy is done.')
})

test('a visit shows the whole address, opens it in a tab, and is asked again until it is done', async () => {
  await begin('connect', {}, { scheme: 'dark' })
  await says('https://bank.example/authorize?account=1')
  expect(await violations()).toEqual([])
  const opened = once(context as never, 'page')
  await press('Open bank.example')
  const [tab] = (await opened) as [Page]
  await tab.close()
  await press('I have done this')
  await says(/has not been completed yet/)
  server?.kill('SIGUSR2')
  await press('I have done this')
  await says('Connected.')
})

test('a task is followed and answered', async () => {
  const { client, id } = await begin('provision', { name: 'web' })
  await choose('Yes')
  await press('Send')
  await says('Where should web run?')
  await choose('us-east')
  await press('Send')
  await says('web runs in us-east.')
  const { content } = await client.callTool({ name: 'rally_result', arguments: { id } })
  expect(content).toEqual([{ type: 'text', text: 'web runs in us-east.' }])
})

test('somebody else, somebody who is logged out, and a wrong link see nothing of the call', async () => {
  await begin('deploy', { env: 'prod' }, { user: 'bob' })
  await says('This question has expired.')
  expect(await page.content()).not.toContain('prod')
  await page.goto(`${page.url()}x`)
  await says('This question has expired.')
  await context.clearCookies()
  const response = await page.reload()
  expect(response?.status()).toBe(401)
})

test('another site can neither frame the page nor post to it with the cookie of the user', async () => {
  await begin('deploy', { env: 'prod' })
  const link = page.url()
  await says(/^Deploy/)
  const evil = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html')
      .end(`<!doctype html><title>evil</title><iframe src="${link}"></iframe>
      <script>
        const body = JSON.stringify({ answers: { go: { action: 'accept', content: { confirm: true } } } })
        const send = (type) => fetch(${JSON.stringify(link)}, { method: 'POST', body, mode: type === 'text/plain' ? 'no-cors' : 'cors', credentials: 'include', headers: { 'Content-Type': type } })
        const sendAll = () => Promise.allSettled(['text/plain', 'application/json'].map(send))
        addEventListener('load', () => sendAll().then(() => (document.title = 'sent')))
      </script>`)
  })
  evil.listen(0, '127.0.0.1')
  await once(evil, 'listening')
  const first = page
  const other = await context.newPage()
  await other.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`)
  await expect.poll(() => other.title(), { timeout: 10_000 }).toBe('sent')
  const frame = other.frames().find((each) => each !== other.mainFrame())
  expect(await frame?.locator('main').count()).toBe(0)
  await other.close()
  evil.close()
  evil.closeAllConnections()
  page = first
  await page.reload()
  await says(/^Deploy/)
})
