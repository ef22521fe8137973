import type { Rally } from 'mcp-rally'
import { elicit, inputRequired, rally, resolver, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accept, askedIn, call, errorOf, textOf } from '../../test/wire/messages.ts'
import type { InputRequest } from '../protocol/messages.ts'
import type { Io } from './io.ts'

const NAME = z.object({ name: z.string() })
const RAW: InputRequest = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Your name?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
}

function newApp(): Rally {
  return rally({ name: 'styles', version: '1', logger: { warn() {}, error() {} } })
}

function raise(thrown: unknown): never {
  throw thrown
}

describe('a handler asks for another round', () => {
  test.each<{ style: string; ask: (io: Io) => unknown }>([
    { style: 'by returning inputRequired', ask: required },
    { style: 'by throwing inputRequired', ask: () => raise(required()) },
    { style: 'by throwing it later', ask: async () => raise(await required()) },
    { style: 'by throwing it in a scope', ask: (io) => io.scope('s', async () => raise(required()) as string) },
    { style: 'with a raw question', ask: () => inputRequired({ inputRequests: { name: RAW }, state: { n: 1 } }) },
    {
      style: "in the wire's own shape",
      ask: () => ({ resultType: 'input_required', inputRequests: { name: RAW }, requestState: { n: 1 } }),
    },
  ])('$style', async ({ ask }) => {
    const app = newApp().tool('greet', {}, async (_args, io) => {
      const name = io.responses.accepted('name', NAME)
      if (name === undefined) return (await ask(io)) as string
      return `${name.name} ${JSON.stringify(io.responses.state())}`
    })
    const first = askedIn(await send(app, call('greet')))
    expect(first.messages).toEqual({ name: 'Your name?' })
    const round = { requestState: first.state, inputResponses: { name: accept({ name: 'Luca' }) } }
    expect(textOf(await send(app, call('greet', {}, round)))).toBe('Luca {"n":1}')
  })

  test.each([
    { what: 'of an unknown method', raw: { method: 'tools/call' }, why: 'its method must be elicitation/create' },
    {
      what: 'without a schema',
      raw: { method: 'elicitation/create', params: { message: 'x' } },
      why: 'requestedSchema',
    },
    {
      what: 'with an address that is no web page',
      raw: { method: 'elicitation/create', params: { mode: 'url', message: 'x', url: 'javascript:1' } },
      why: 'its url must be an http or https URL',
    },
  ])('a raw question $what is refused', async ({ raw, why }) => {
    const app = newApp().tool('greet', {}, () => inputRequired({ inputRequests: { name: raw as never } }))
    const error = errorOf(await send(app, call('greet')))
    expect(error).toMatchObject({ data: { code: 'QUESTION_INVALID' } })
    expect(error.message).toContain(why)
  })

  test('but not inside a step', async () => {
    const app = newApp().tool('greet', {}, (_args, io) => io.step('s', () => raise(required()) as string))
    expect(errorOf(await send(app, call('greet')))).toMatchObject({ data: { code: 'NESTED_CALL' } })
  })

  test.each([
    { how: 'returns', ask: required },
    { how: 'throws', ask: () => raise(required()) },
  ])('but not with needs: one that $how it is refused at the first use', async ({ ask }) => {
    const account = resolver('account', { run: () => 'x' })
    const app = newApp().tool('greet', { needs: { account } }, async () => (await ask()) as string)
    const error = errorOf(await send(app, call('greet')))
    expect(error).toMatchObject({ data: { code: 'MIXED_STYLES' } })
    expect(error.message).toContain('Tool "greet": a handler with `needs` cannot take its rounds by hand')
  })
})

function required(): unknown {
  return inputRequired({ inputRequests: { name: elicit('Your name?', NAME) }, state: { n: 1 } })
}
