import type { Rally } from 'mcp-rally'
import { inputRequired, resolver, send } from 'mcp-rally'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { accept, askedIn, call, errorOf, resultOf, textOf } from '../wire/messages.ts'
import type { Kind } from './kinds.ts'
import { kinds } from './kinds.ts'
import { ask, makeApp, prompt, read, responseOf } from './messages.ts'
import type { WireRequest } from '../wire/messages.ts'
import { httpHosts } from './wires.ts'

const FROZEN = { code: -32602, message: 'Invalid or expired requestState' }

let runs = 0
beforeEach(() => {
  runs = 0
})

const declared = resolver('declared', { run: async (_args: unknown, io) => io.confirm('sure', 'Sure?') })

/** Every style under every kind, and each twice: `a` and `b` ask the same in the same words. */
function twinApp(): Rally {
  const { app } = makeApp()
  for (const { register } of kinds) {
    for (const twin of ['a', 'b']) {
      register(app, `asks-${twin}`, async (io) => {
        runs += 1
        return String(await io.confirm('sure', 'Sure?'))
      })
      register(app, `needs-${twin}`, () => String((runs += 1)), { needs: { declared } })
      register(app, `hand-${twin}`, (io) => {
        runs += 1
        return io.responses.state() === undefined ? inputRequired({ state: 1 }) : 'done'
      })
    }
  }
  const input = z.object({ x: z.string(), y: z.string().optional() })
  app.tool('args', { input }, async ({ x }, io) => `${x} ${await io.confirm('sure', 'Sure?')}`)
  app.prompt('args', { arguments: input }, async ({ x }, io) => `${x} ${await io.confirm('sure', 'Sure?')}`)
  app.resourceTemplate('args://{x}', { name: 'args' }, async ({ x }, io) => `${x} ${await io.confirm('sure', 'Sure?')}`)
  return app
}

const ANSWERS = { sure: accept({ confirm: true }), 'needs:declared>sure': accept({ confirm: true }) }

async function stateOf(app: Rally, message: WireRequest): Promise<string> {
  const { requestState } = resultOf(await responseOf(app, message))
  return requestState as string
}

const styles = ['asks', 'needs', 'hand']
const cases = kinds.flatMap((kind) => styles.map((style) => ({ kind, style })))

describe.each(cases)('the state of $kind.kind that goes by "$style"', ({ kind, style }) => {
  const { request } = kind
  const app = twinApp()

  test('goes on where it was begun', async () => {
    const requestState = await stateOf(app, request(`${style}-a`))
    const done = await responseOf(app, request(`${style}-a`, { requestState, inputResponses: ANSWERS }))
    expect(resultOf(done)['resultType']).toBe('complete')
  })

  test('is refused for another of the same kind, and no handler sees it', async () => {
    const requestState = await stateOf(app, request(`${style}-a`))
    runs = 0
    const response = await responseOf(app, request(`${style}-b`, { requestState, inputResponses: ANSWERS }))
    expect(errorOf(response)).toEqual(FROZEN)
    expect(runs).toBe(0)
  })

  test.each(kinds.filter((other) => other !== kind))('is refused for $kind of the same name', async (other: Kind) => {
    const requestState = await stateOf(app, request(`${style}-a`))
    runs = 0
    const response = await responseOf(app, other.request(`${style}-a`, { requestState, inputResponses: ANSWERS }))
    expect(errorOf(response)).toEqual(FROZEN)
    expect(runs).toBe(0)
  })

  test('is refused for another caller, for none, and for one where there was none', async () => {
    const [ada, bob, nobody] = [{ principal: 'ada' }, { principal: 'bob' }, {}]
    const hers = resultOf(await send(app, request(`${style}-a`), ada))['requestState']
    const nobodys = resultOf(await send(app, request(`${style}-a`), nobody))['requestState']
    const [goOn, goOnWithNobodys] = [hers, nobodys].map((requestState) =>
      request(`${style}-a`, { requestState, inputResponses: ANSWERS }),
    ) as [WireRequest, WireRequest]
    expect(resultOf(await send(app, goOn, ada))['resultType']).toBe('complete')
    runs = 0
    expect(errorOf(await send(app, goOn, bob))).toEqual(FROZEN)
    expect(errorOf(await send(app, goOn, nobody))).toEqual(FROZEN)
    expect(errorOf(await send(app, goOnWithNobodys, ada))).toEqual(FROZEN)
    expect(runs).toBe(0)
  })
})

describe('a state', () => {
  const app = twinApp()
  const sure = { inputResponses: { sure: accept({ confirm: true }) } }

  test.each([
    ['argument of a tool', call('args', { x: '1' }), (round: object) => call('args', { x: '2' }, round)],
    ['argument of a prompt', prompt('args', { x: '1' }), (round: object) => prompt('args', { x: '2' }, round)],
    ['URI of a template', read('args://1'), (round: object) => read('args://2', round)],
    ['spelling of the same URI', read('args://1'), (round: object) => read('args://%31', round)],
  ])('is refused for another %s', async (_what, begun, other) => {
    const { state: requestState } = askedIn(await responseOf(app, begun))
    expect(errorOf(await responseOf(app, other({ ...sure, requestState })))).toEqual(FROZEN)
  })

  test('goes on for the same arguments in another order, and for the same URI', async () => {
    const begun = askedIn(await responseOf(app, call('args', { x: '1', y: '2' })))
    const swapped = call('args', { y: '2', x: '1' }, { ...sure, requestState: begun.state })
    expect(textOf(await responseOf(app, swapped))).toBe('1 true')
    const { state: requestState } = askedIn(await responseOf(app, read('args://1')))
    const { contents } = resultOf(await responseOf(app, read('args://1', { ...sure, requestState })))
    expect(contents).toEqual([{ uri: 'args://1', text: '1 true' }])
  })

  test.each([
    ['no text', 7],
    ['an object', {}],
    ['empty', ''],
    ['made up', 'rs1.AAAA'],
    ['null', null],
  ])('that is %s is refused with the same words, also where nothing is ever asked', async (_what, requestState) => {
    const { app: plain } = makeApp()
    plain.prompt('plain', {}, () => 'Hi').resource('a://b', { name: 'b' }, () => 'Hi')
    expect(errorOf(await responseOf(plain, prompt('plain', {}, { requestState })))).toEqual(FROZEN)
    expect(errorOf(await responseOf(plain, read('a://b', { requestState })))).toEqual(FROZEN)
  })
})

test.each(httpHosts)(
  'over $name the caller is who the host authenticated, whoever holds the state',
  async ({ open }) => {
    const app = twinApp()
    const wires = await Promise.all(
      ['ada', 'bob'].map((principal) => open(app, { authenticate: () => ({ principal }) })),
    )
    onTestFinished(() => Promise.all(wires.map((wire) => wire.close())).then(() => {}))
    const [ada, bob] = wires as [(typeof wires)[0], (typeof wires)[0]]
    const { state: requestState } = askedIn(await ask(ada, read('args://1')))
    const message = (): WireRequest => read('args://1', { inputResponses: ANSWERS, requestState })
    const stolen = await bob.open(message()).answer()
    expect(errorOf(stolen.response)).toEqual(FROZEN)
    expect(stolen.status).toBe(200)
    expect(resultOf(await ask(ada, message()))['contents']).toEqual([{ uri: 'args://1', text: '1 true' }])
  },
)

test('a state for 0 does not open for -0, which a handler can tell apart', async () => {
  const { app } = makeApp()
  app.tool('divide', { input: z.object({ by: z.number() }) }, async ({ by }, io) => {
    await io.confirm('sure', 'Sure?')
    return String(1 / by)
  })
  const requestState = await stateOf(app, call('divide', { by: 0 }))
  const retry = JSON.stringify(call('divide', { by: 0 }, { inputResponses: ANSWERS, requestState }))
  const dispatched = async (text: string): Promise<object> =>
    JSON.parse((await app.dispatch(JSON.parse(text)))?.text ?? '') as object
  expect(errorOf(await dispatched(retry.replace('"by":0', '"by":-0')))).toMatchObject(FROZEN)
  expect(textOf(await dispatched(retry))).toBe('Infinity')
})
