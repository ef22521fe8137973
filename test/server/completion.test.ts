import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { errorOf, request, resultOf } from '../wire/messages.ts'
import { ask, makeApp, responseOf } from './messages.ts'
import type { Wire } from './wires.ts'
import { hosts } from './wires.ts'

const PROMPT = { type: 'ref/prompt', name: 'trip' }
const TEMPLATE = { type: 'ref/resource', uri: 'city://{country}/{city}' }
const CITIES: Readonly<Record<string, string[]>> = { no: ['Oslo', 'Odda'], it: ['Rome', 'Olbia'] }

function completingApp(): ReturnType<typeof makeApp> {
  const { app, logged } = makeApp({ showErrors: false })
  app.prompt(
    'trip',
    {
      arguments: z.object({ month: z.string(), note: z.string().optional(), broken: z.string().optional() }),
      complete: {
        month: ['March', 'May', 'June'],
        broken: () => {
          throw new Error('secret: no database')
        },
      },
    },
    () => 'Hi',
  )
  app.resourceTemplate(
    'city://{country}/{city}',
    {
      name: 'city',
      complete: {
        country: async (value) => Object.keys(CITIES).filter((country) => country.startsWith(value)),
        city: (value, { arguments: { country = '' } }) =>
          (CITIES[country] ?? []).filter((city) => city.startsWith(value)),
      },
    },
    () => 'Hi',
  )
  app.resource('city://fixed', { name: 'fixed' }, () => 'Hi')
  return { app, logged }
}

const complete = (ref: object, name: string, value: string, context?: object): ReturnType<typeof request> =>
  request('completion/complete', { ref, argument: { name, value }, ...(context && { context }) })

describe.each(hosts)('completion over $name', ({ isHttp, open }) => {
  const { app, logged } = completingApp()
  let wire: Wire

  beforeAll(async () => {
    wire = await open(app)
  })
  afterAll(() => wire.close())

  test('suggests what a list has for the argument of a prompt', async () => {
    const { completion } = resultOf(await ask(wire, complete(PROMPT, 'month', 'm')))
    expect(completion).toEqual({ values: ['March', 'May'], total: 2, hasMore: false })
  })

  test('suggests what a function finds for the variable of a template, by what is filled in already', async () => {
    const countries = resultOf(await ask(wire, complete(TEMPLATE, 'country', '')))
    expect(countries['completion']).toMatchObject({ values: ['no', 'it'] })
    const cities = complete(TEMPLATE, 'city', 'O', { arguments: { country: 'no' } })
    expect(resultOf(await ask(wire, cities))['completion']).toMatchObject({ values: ['Oslo', 'Odda'] })
    expect(resultOf(await ask(wire, complete(TEMPLATE, 'city', 'O')))['completion']).toMatchObject({ values: [] })
  })

  test.each([
    ['prompt', complete({ ...PROMPT, name: 'nothing' }, 'month', ''), 'ref names nothing that is registered'],
    ['template', complete({ ...TEMPLATE, uri: 'a://{b}' }, 'b', ''), 'ref names nothing that is registered'],
    ['argument', complete(PROMPT, 'nothing', ''), 'there is no argument "nothing"'],
    [
      'argument of a fixed resource',
      complete({ ...TEMPLATE, uri: 'city://fixed' }, 'a', ''),
      'there is no argument "a"',
    ],
  ])('an unknown %s is an invalid param', async (_what, message, why) => {
    const { response, status } = await wire.open(message).answer()
    expect(errorOf(response)).toEqual({ code: -32602, message: `Invalid params: ${why}` })
    expect(status).toBe(isHttp ? 200 : undefined)
  })

  test('an error in a function is told to the log alone', async () => {
    logged.errors.length = 0
    expect(errorOf(await ask(wire, complete(PROMPT, 'broken', '')))).toEqual({
      code: -32603,
      message: expect.stringMatching(/^The completion failed\. Reference: [\w-]{11}$/) as string,
    })
    expect(logged.errors).toEqual(['Serving completion/complete failed.'])
  })
})

test('a server that completes nothing knows no such method, whatever else it has', async () => {
  const { app } = makeApp()
  app.prompt('trip', { arguments: z.object({ month: z.string() }) }, () => 'Hi')
  expect(errorOf(await responseOf(app, complete(PROMPT, 'month', ''))).code).toBe(-32601)
})
