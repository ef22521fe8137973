// An app to be mistreated, and a word for how a message fared.
import type { Rally } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import { afterAll, beforeAll, expect } from 'vitest'
import { z } from 'zod'
import { META_LOG_LEVEL } from '../../src/protocol/revisions/2026-07-28.ts'
import type { WireRequest } from './messages.ts'
import { accept, askedIn, call, textOf } from './messages.ts'
import type { RawAnswer, RawWire } from './raw.ts'

export const ARGS = { env: 'production', options: { force: false, tags: ['a'] } }

/** So that what a client may say of notifications is there to be wrong. */
export const WANTED = { [META_LOG_LEVEL]: 'error', progressToken: 'p' }

export function hostileApp(): Rally {
  const app = rally({
    name: 'hostile',
    version: '1',
    keys: ['a secret of the wire tests, long enough'],
    logger: { warn() {}, error() {} },
  })
  app.tool(
    'deploy',
    {
      input: z.object({ env: z.string(), options: z.object({ force: z.boolean(), tags: z.array(z.string()) }) }),
      asks: { ok: z.object({ ok: z.boolean() }) },
    },
    async ({ env }, io) => ((await io.ask('ok', 'Go ahead?')).ok ? `Deployed to ${env}` : 'Left as it was'),
  )
  app.tool('echo', { input: z.object({ text: z.string() }) }, ({ text }) => text)
  // A plain JSON Schema lets everything through to the handler, as it came.
  app.tool('mirror', { input: { type: 'object' }, output: { type: 'object' } }, (args) => args)
  app.tool('sample', {}, async (_args, io) => {
    const hello = { role: 'user' as const, content: { type: 'text' as const, text: 'Hi' } }
    return (await io.sample('q', { messages: [hello], maxTokens: 9 })).model
  })
  app.tool('roots', {}, async (_args, io) => `${(await io.roots('q')).length} roots`)
  app.tool('visit', {}, async (_args, io) => {
    await io.visit('q', 'Go there.', 'https://example.com/', { done: () => true })
    return 'Been there'
  })
  return app
}

/** A valid second round of the tool `deploy`. */
export async function secondRound(app: Rally): Promise<WireRequest> {
  const { state } = askedIn(await send(app, call('deploy', ARGS)))
  return call('deploy', ARGS, { requestState: state, inputResponses: { ok: accept({ ok: true }) } }, WANTED)
}

/**
 * Expects that a message fared so: it was `done`, it `asks`, it is an `isError` result, there was `nothing` to say, or
 * it is an error, given as `400 -32600`. `frozen` is the one error of every state that does not open.
 */
export function expectFate(answer: RawAnswer, fate: string, about = ''): void {
  // A wire without statuses has the rest in common.
  const expected = answer.status === undefined ? fate.replace(/^\d+ /, '') : fate
  expect(`${about}: ${fateOf(answer)}`).toBe(`${about}: ${expected}`)
}

export async function expectServed(wire: RawWire): Promise<void> {
  const { message } = await wire.send(JSON.stringify(call('echo', { text: 'still here' })))
  expect(textOf(message)).toBe('still here')
}

/** Fails a file whose tests left anything behind on what all objects have in common. */
export function guardPrototypes(): void {
  let before: string[] = []
  beforeAll(() => {
    before = namesOf()
  })
  afterAll(() => {
    expect(namesOf()).toEqual(before)
  })
}

function namesOf(): string[] {
  return [Object, Array, Function, String, Number, Boolean, Promise, Map]
    .flatMap((type) => [type, type.prototype as object])
    .flatMap((object) => Reflect.ownKeys(object).map(String))
}

function fateOf({ status, message }: RawAnswer): string {
  const prefix = status === undefined ? '' : `${status} `
  if (message === undefined) return `${prefix}nothing`
  const { result, error } = message
  if (error !== undefined) {
    return prefix + (error.message === 'Invalid or expired requestState' ? 'frozen' : String(error.code))
  }
  if (status !== undefined && status !== 200) return `${prefix}with a result`
  if (result?.['resultType'] === 'input_required') return 'asks'
  return result?.['isError'] === true ? 'isError' : 'done'
}
