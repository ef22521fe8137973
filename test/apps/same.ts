// Random flows with every kind of field: answered in an MCP App, on a page by a link and by a client with forms of its own, they come to
// the same result, and each step runs once.
import fc from 'fast-check'
import type { Io, Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { expect } from 'vitest'
import { META_CAPABILITIES } from '../../src/protocol/revisions/2026-07-28.ts'
import { accept, META } from '../wire/messages.ts'
import { KEYS } from './app.ts'
import type { Json, Send } from './peer.ts'
import { callTool, Page, UI, VIEW } from './peer.ts'
import { linkIn, Visitor } from './visitor.ts'

interface Field {
  readonly schema: object
  readonly value: unknown
}

interface Asked {
  readonly kind: 'ask'
  readonly fields: readonly Field[]
  /** An answer that does not match comes first. */
  readonly isWrongFirst: boolean
  readonly isDeclined: boolean
}

type Action = Asked | { readonly kind: 'step' } | { readonly kind: 'together'; readonly asks: readonly Asked[] }

const text = fc.string({ minLength: 1, maxLength: 20 })
const codes = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const
const titled = codes.map((code) => ({ const: code, title: `The ${code}` }))
const field: fc.Arbitrary<Field> = fc.oneof(
  text.map((value) => ({ schema: { type: 'string', minLength: 1, maxLength: 20 }, value })),
  fc.constant({ schema: { type: 'string', format: 'email' }, value: 'ann@example.org' }),
  fc.constant({ schema: { type: 'string', format: 'uri' }, value: 'https://example.org/' }),
  fc.constant({ schema: { type: 'string', format: 'date' }, value: '2026-12-24' }),
  fc.constant({ schema: { type: 'string', format: 'date-time' }, value: '2026-12-24T18:00:00Z' }),
  fc.integer({ min: -5, max: 5 }).map((value) => ({ schema: { type: 'integer', minimum: -5, maximum: 5 }, value })),
  fc.double({ min: 0, max: 1, noNaN: true }).map((value) => ({ schema: { type: 'number', minimum: 0 }, value })),
  fc.boolean().map((value) => ({ schema: { type: 'boolean' }, value })),
  fc.constantFrom(...codes).map((value) => ({ schema: { type: 'string', enum: codes }, value })),
  fc.constantFrom(...codes).map((value) => ({ schema: { type: 'string', oneOf: titled }, value })),
  fc
    .subarray([...codes])
    .map((value) => ({ schema: { type: 'array', items: { type: 'string', enum: codes } }, value })),
  fc.subarray([...codes]).map((value) => ({ schema: { type: 'array', items: { anyOf: titled } }, value })),
)
const asked: fc.Arbitrary<Asked> = fc.record({
  kind: fc.constant('ask'),
  fields: fc.array(field, { minLength: 1, maxLength: 3 }),
  isWrongFirst: fc.boolean(),
  isDeclined: fc.boolean(),
})
const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    asked,
    fc.constant({ kind: 'step' } as const),
    fc.array(asked, { minLength: 2, maxLength: 3 }).map((asks) => ({ kind: 'together', asks }) as const),
  ),
  { maxLength: 4 },
)

const keyOf = (at: number, part = 0): string => `k${at}.${part}`

function schemaOf({ fields }: Asked): Json {
  const properties = Object.fromEntries(fields.map(({ schema }, index) => [`f${index}`, schema]))
  return { type: 'object', properties, required: Object.keys(properties) }
}

/** What is answered to each question, by its key: first perhaps something wrong. */
function answersTo(all: readonly Action[]): Map<string, Json[]> {
  const answers = new Map<string, Json[]>()
  for (const [at, action] of all.entries()) {
    const asks = action.kind === 'ask' ? [action] : action.kind === 'together' ? action.asks : []
    for (const [part, { fields, isDeclined, isWrongFirst }] of asks.entries()) {
      const content = Object.fromEntries(fields.map(({ value }, index) => [`f${index}`, value])) as Json
      const last = isDeclined ? { action: 'decline' } : accept(content)
      answers.set(keyOf(at, part), [...(isWrongFirst ? [accept({ f0: null } as Json)] : []), last])
    }
  }
  return answers
}

class Flow {
  readonly app: Rally
  steps = 0

  constructor(all: readonly Action[]) {
    this.app = rally({
      name: 'same',
      version: '1',
      keys: KEYS,
      apps: { waitMs: 0 },
      page: { url: 'http://localhost/ask', trustModelWithLink: true, waitMs: 0 },
      strict: false,
      logger: { warn() {}, error() {} },
    })
    this.app.tool('flow', { apps: true }, async (_args, io) => {
      const seen: unknown[] = []
      for (const [at, action] of all.entries()) {
        if (action.kind === 'step') seen.push(await io.step(keyOf(at), () => `step ${(this.steps += 1)}`))
        else if (action.kind === 'ask') seen.push(await ask(io, action, at, 0))
        else seen.push(await Promise.all(action.asks.map((each, part) => ask(io, each, at, part))))
      }
      return JSON.stringify(seen)
    })
  }

  send(capabilities: object): Send {
    return async (method, params = {}) => {
      const message = {
        jsonrpc: '2.0',
        id: 1,
        method,
        params: { ...params, _meta: { ...META, [META_CAPABILITIES]: capabilities } },
      }
      const { result, error } = JSON.parse((await this.app.dispatch(message))?.text ?? '{}')
      if (error !== undefined) throw new Error(error.message)
      return result
    }
  }
}

function ask(io: Io, action: Asked, at: number, part: number): Promise<unknown> {
  return io.elicit(keyOf(at, part), `Question ${at}.${part}?`, schemaOf(action))
}

/** The next answer to each question. The last one stays. */
function nextAnswers(questions: object, answers: Map<string, Json[]>): object {
  return Object.fromEntries(
    Object.keys(questions).map((key) => {
      const left = answers.get(key) ?? []
      return [key, left.length > 1 ? left.shift() : left[0]]
    }),
  )
}

interface Outcome {
  readonly text: string
  readonly steps: number
}

async function inApp(all: readonly Action[]): Promise<Outcome> {
  const flow = new Flow(all)
  const send = flow.send(UI)
  const answers = answersTo(all)
  const page = await Page.open(send)
  const first = await callTool(send, 'flow')
  let view = first._meta?.[VIEW]
  if (view === undefined) return { text: first.content[0].text, steps: flow.steps }
  while (view.kind === 'asks') view = await page.answer(view, nextAnswers(view.questions, answers))
  const { content } = await callTool(send, 'rally_result', { id: view.id })
  expect(view.result.content).toEqual(content)
  return { text: content[0].text, steps: flow.steps }
}

async function byLink(all: readonly Action[]): Promise<Outcome> {
  const flow = new Flow(all)
  const send = flow.send({})
  const answers = answersTo(all)
  const first = await callTool(send, 'flow')
  const link = linkIn(first)
  if (link === '') return { text: first.content[0].text, steps: flow.steps }
  const page = await Visitor.open(flow.app.fetch, link)
  let view = await page.look()
  while (view.kind === 'asks') view = await page.answer(view, nextAnswers(view.questions, answers))
  const { content } = await callTool(send, 'rally_result', { id: view.id })
  expect(view.result.content).toEqual(content)
  return { text: content[0].text, steps: flow.steps }
}

async function inForms(all: readonly Action[]): Promise<Outcome> {
  const flow = new Flow(all)
  const send = flow.send({ elicitation: { form: {} } })
  const answers = answersTo(all)
  let result = await callTool(send, 'flow')
  while (result.resultType === 'input_required') {
    const { requestState, inputRequests } = result
    const inputResponses = nextAnswers(inputRequests, answers)
    result = await send('tools/call', { name: 'flow', arguments: {}, requestState, inputResponses })
  }
  return { text: result.content[0].text, steps: flow.steps }
}

/** Checks so many random flows. */
export function checkSame(numRuns: number): Promise<void> {
  return fc.assert(
    fc.asyncProperty(actions, async (all) => {
      const forms = await inForms(all)
      expect(await inApp(all)).toEqual(forms)
      expect(await byLink(all)).toEqual(forms)
      expect(forms.steps).toBe(all.filter(({ kind }) => kind === 'step').length)
    }),
    { numRuns },
  )
}
