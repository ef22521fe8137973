// A login in real Chromium: the client opens a page of oidc-provider, the forms are filled in on the screen, and the browser comes
// back to the client.
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { connect } from 'mcp-rally/client'
import { expect, onTestFinished, test } from 'vitest'
import { openCallback } from '../../src/cli/callback.ts'
import { startBehindProvider } from '../oauth/behind-provider.ts'

test('a user logs in and agrees in Chromium, and again for more scopes', { timeout: 120_000 }, async () => {
  const { url } = await startBehindProvider()
  const browser = await Browser.open()
  const callback = await openCallback(undefined)
  onTestFinished(() => callback.close())
  const prompts: string[] = []
  const client = await connect(url, {
    oauth: {
      redirectUrl: callback.redirectUrl,
      onAuthorize: async (page) => {
        await browser.visit(page.href)
        return browser.fillIn(callback.redirectUrl, prompts)
      },
    },
  })
  onTestFinished(() => client.close())
  expect((await client.callTool('read')).content).toEqual([{ type: 'text', text: 'read by ada' }])
  expect((await client.callTool('write')).content).toEqual([{ type: 'text', text: 'written by ada' }])
  // The browser remembers who logged in, so the second time it only asks for consent.
  expect(prompts).toEqual(['login', 'consent', 'consent'])
})

/** What stands in the page: its address, and the form that waits. */
const LOOK = `JSON.stringify({ at: location.href, prompt: document.querySelector('[name=prompt]')?.value ?? '', isReady: document.readyState === 'complete' })`
const SUBMIT = `(() => {
  const login = document.querySelector('[name=login]')
  if (login) { login.value = 'ada'; document.querySelector('[name=password]').value = 'any' }
  document.querySelector('form').requestSubmit()
})()`

/** Chromium, by its own protocol over a pipe. */
class Browser {
  readonly #pipe: Duplex
  readonly #waiting = new Map<number, (result: Record<string, unknown>) => void>()
  #session = ''
  #lastId = 0

  static async open(): Promise<Browser> {
    const profile = await mkdtemp(join(tmpdir(), 'rally-chromium-'))
    const flags = [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--remote-debugging-pipe',
      `--user-data-dir=${profile}`,
    ]
    const child = spawn('chromium', flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
    onTestFinished(async () => {
      const ended = new Promise((resolve) => void child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    })
    const browser = new Browser(child.stdio[3] as Duplex, child.stdio[4] as Duplex)
    const { targetId } = await browser.#send('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await browser.#send('Target.attachToTarget', { targetId, flatten: true })
    browser.#session = String(sessionId)
    return browser
  }

  private constructor(pipe: Duplex, answers: Duplex) {
    this.#pipe = pipe
    let text = ''
    answers.setEncoding('utf8').on('data', (chunk: string) => {
      const messages = (text + chunk).split('\0')
      text = messages.pop() ?? ''
      for (const message of messages) {
        const { id, result = {} } = JSON.parse(message) as { id?: number; result?: Record<string, unknown> }
        if (id !== undefined) this.#waiting.get(id)?.(result)
      }
    })
  }

  async visit(url: string): Promise<void> {
    await this.#send('Page.navigate', { url })
  }

  /** Fills in forms until the browser is at the address. Returns it with its query. */
  async fillIn(until: string, prompts: string[]): Promise<string> {
    let filled = ''
    for (;;) {
      const { at, prompt, isReady } = await this.#look()
      if (at.startsWith(until)) return at
      if (isReady && prompt !== '' && filled !== `${at} ${prompt}`) {
        filled = `${at} ${prompt}`
        prompts.push(prompt)
        await this.#send('Runtime.evaluate', { expression: SUBMIT })
      }
      await new Promise((resolve) => void setTimeout(resolve, 50))
    }
  }

  async #look(): Promise<{ at: string; prompt: string; isReady: boolean }> {
    const { result } = await this.#send('Runtime.evaluate', { expression: LOOK })
    const { value } = (result ?? {}) as { value?: string }
    return JSON.parse(value ?? '{"at":"","prompt":"","isReady":false}') as never
  }

  #send(method: string, params: object): Promise<Record<string, unknown>> {
    const id = (this.#lastId += 1)
    const session = this.#session === '' ? {} : { sessionId: this.#session }
    this.#pipe.write(`${JSON.stringify({ id, method, params, ...session })}\0`)
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }
}
