// The app for clients that carry their calls, and what its steps have done.
import type { Rally } from 'mcp-rally'
import { afterEach, beforeEach } from 'vitest'
import { z } from 'zod'
import { olderApp } from './app.mjs'
import { accepted, readSegment, openCarrying } from './carried.ts'
import type { Ask, RawHost, RawSession, Wired } from './raw.ts'

export const said = { role: 'assistant', content: { type: 'text', text: 'In short.' }, model: 'm' }

/** What a patient user answers to everything that the app asks. */
export function answer({ method, params }: Wired): object {
  if (method === 'sampling/createMessage') return said
  if (method === 'roots/list') return { roots: [{ uri: 'file:///one' }] }
  const message = String(params?.['message'])
  if (message.startsWith('Deploy')) return accepted({ confirm: true })
  if (message.startsWith('How old')) return accepted({ age: 36 })
  if (message.startsWith('Where to')) return accepted({ choice: 'hills' })
  if (/^(Please|Look|Go on)/.test(message)) return accepted()
  return accepted({ name: 'Ada' })
}

/** Calls a tool up to its first question. */
export async function askedBy(
  session: RawSession,
  tool = 'deploy',
  args: object = { env: 'x' },
): Promise<{ question: Wired; lastId: string }> {
  const { last, lastId } = await readSegment(await session.call(tool, args))
  if (last?.method === undefined) throw new Error(`Nothing was asked: ${JSON.stringify(last)}`)
  return { question: last, lastId }
}

/** An app of its own for each test, and a session of a client that carries states. */
export interface CarryingSetUp {
  made: Carrying
  app: Rally
  ask: Ask
  session: RawSession
}

/** Registers the hooks that set it up before each test and close it after. Its members are there once a test runs. */
export function useCarrying(host: RawHost): CarryingSetUp {
  const on = {} as CarryingSetUp
  let close: () => Promise<void>
  beforeEach(async () => {
    on.made = new Carrying()
    on.app = on.made.app()
    const opened = await host.open(on.app)
    ;({ close } = opened)
    on.ask = opened.ask
    on.session = await openCarrying(on.ask)
  })
  afterEach(() => close())
  return on
}

/** The instances of one test: all of them tell their effects to the same list. */
export class Carrying {
  readonly effects: string[] = []
  /** What some of its steps, and its mailboxes, wait for. */
  readonly gate: Promise<void>
  open: () => void = () => {}

  constructor() {
    this.gate = new Promise((resolve) => {
      this.open = resolve
    })
  }

  app(options: object = {}): Rally {
    const { effects, gate } = this
    const app = olderApp(options)
    app.tool('count', { input: z.object({ by: z.string() }) }, async ({ by }, io) => {
      await io.step('before', () => void effects.push(`${by} before`))
      io.progress(1, 2, 'asking')
      const sure = await io.confirm('sure', 'Sure?')
      await io.step('after', () => void effects.push(`${by} after`))
      io.progress(2, 2, 'done')
      io.log('warning', 'It is done.')
      return sure ? `Counted ${effects.filter((each) => each.startsWith(by)).length}.` : 'Left as it was.'
    })
    app.tool('climb', {}, async (_args, io) => {
      for (const [key, reports] of [
        ['a', [1, 3]],
        ['b', [4, 2, 5]],
        ['c', [1, 6]],
      ] as const) {
        await io.step(key, ({ progress }) => reports.forEach((each) => progress(each)))
        await io.confirm(`sure ${key}`.replace(' ', '_'), 'Sure?')
      }
      await io.step('d', ({ progress }) => progress(6))
      return 'Climbed.'
    })
    app.tool('hold', {}, async (_args, io) => {
      await io.confirm('sure', 'Sure?')
      effects.push('holding')
      await new Promise((resolve) => io.signal.addEventListener('abort', resolve, { once: true }))
      effects.push('stopped')
    })
    app.tool('late', {}, async (_args, io) => {
      io.log('warning', 'Soon.')
      await io.step('gate', () => gate)
      return (await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'
    })
    app.tool('large', {}, async (_args, io) => {
      await io.step('much', () => 'x'.repeat(48_900))
      return (await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'
    })
    app.tool('ask_much', {}, async (_args, io) => {
      await io.confirm('sure', 'Sure?')
      return (await io.confirm('much', `Sure? ${'y'.repeat(5_000)}`)) ? 'Yes.' : 'No.'
    })
    app.tool('tell_much', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'y'.repeat(5_000) : ''))
    return app
  }
}
