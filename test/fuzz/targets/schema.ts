// JSON Schemas: of tools and questions as an author writes them, and of a server as its client sees them.
import type { Rally, Schema } from 'mcp-rally'
import { RallyError, rally, send } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { accept, call } from '../../wire/messages.ts'
import type { Json } from '../harness/json.ts'
import { isObject, mutateText, oddValue, parsed } from '../harness/json.ts'
import { fateOf } from '../wire/messages.ts'
import type { Random } from '../harness/random.ts'
import { someSchema } from '../hostile/schemas.ts'
import type { Watch } from '../harness/target.ts'
import { stackOf, target } from '../harness/target.ts'
import { Asked, checkSent } from '../wire/check.ts'

/** As texts, so that they can be made smaller. */
type Input = { input: string; output: string; form: string; values: string[] }

export const schema = target<Input>({
  name: 'schema',
  generate: (random) => ({
    input: object(random, 2),
    output: random.chance(0.8) ? object(random, 2) : JSON.stringify(someSchema(random, 2)),
    form: object(random, 0),
    values: random.list(1, 3, () => JSON.stringify(someValue(random))),
  }),
  mutate(random, input, other) {
    const name = random.pick(['input', 'output', 'form'] as const)
    if (random.chance(0.3)) return { ...input, values: [...input.values.slice(-3), JSON.stringify(someValue(random))] }
    return { ...input, [name]: mutateText(random, input[name], other[name]) }
  },
  open: async (watch) => ({
    async run(input) {
      const { values, ...texts } = input
      const {
        input: ours,
        output,
        form,
      } = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, parsed(text)]))
      if (!isObject(ours) || !isObject(output) || !isObject(form)) return ['no schemas']
      const given = values.map((value) => parsed(value) ?? null)
      const words = await asAuthor(watch, ours, output, form, given)
      const schemas = withSlowPatterns([ours, output, form])
      return schemas === undefined ? words : [...words, ...(await asServer(watch, schemas, given))]
    },
    close: async () => {},
  }),
})

function object(random: Random, depth: number): string {
  const fields = random.list(0, 3, (index) => [`f${index}`, someSchema(random, depth)] as const)
  return JSON.stringify({
    type: 'object',
    properties: Object.fromEntries(fields),
    ...(random.chance(0.3) && { required: ['f0'] }),
  })
}

function someValue(random: Random): Json {
  const leaf = (): Json =>
    random.pick<Json>([
      'x',
      'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!',
      1,
      -1.5,
      true,
      null,
      [],
      ['x', 'x'],
      { a: 1 },
      oddValue(random, 1),
    ])
  return { f0: leaf(), ...(random.chance(0.5) && { f1: leaf() }), ...(random.chance(0.3) && { f2: leaf() }) }
}

/** A wrong schema is refused when the tool is registered; with any other, every call is answered. */
async function asAuthor(
  watch: Watch,
  input: Json,
  output: Json,
  form: Json,
  values: readonly Json[],
): Promise<string[]> {
  const words: string[] = []
  const [value] = values
  const register: Record<string, (app: Rally) => void> = {
    input: (app) => app.tool('t', { input: input as Schema }, (args) => JSON.stringify(args)),
    output: (app) => app.tool('t', { output: output as Schema }, () => value as never),
    asks: (app) => app.tool('t', {}, async (_args, io) => JSON.stringify(await io.ask('q', 'Which?', form as Schema))),
    declared: (app) =>
      app.tool('t', { asks: { q: form as Schema } }, async (_args, io) => JSON.stringify(await io.ask('q', 'Which?'))),
  }
  for (const [name, add] of Object.entries(register)) {
    const app = rally({ name: 'schemas', version: '1', keys: [KEY], logger: watch.logger })
    try {
      add(app)
    } catch (error) {
      if (!(error instanceof RallyError)) watch.report('internal', `Registering a tool failed with ${stackOf(error)}`)
      words.push(`${name} refused ${String(Reflect.get(error as object, 'code'))}`)
      continue
    }
    for (const each of values) words.push(`${name} ${await answered(watch, app, name, each)}`)
  }
  return words
}

const KEY = 'the key of the schema target, long enough'

async function answered(watch: Watch, app: Rally, name: string, value: Json): Promise<string> {
  const args = name === 'input' && isObject(value) ? value : {}
  const first = await send(app, call('t', args))
  const { requestState } = (first as { result?: { requestState?: string } } | undefined)?.result ?? {}
  const answers = { requestState, inputResponses: { q: accept(isObject(value) ? (value as never) : {}) } }
  const last = requestState === undefined ? first : await send(app, call('t', args, answers))
  const asked = new Asked()
  asked.note(JSON.stringify({ id: last?.id ?? null, method: 'tools/call' }) + JSON.stringify(value))
  checkSent(watch, JSON.stringify(last), asked)
  return fateOf(last)
}

type Schemas = [input: Json, output: Json, form: Json]

/** Slow on purpose. An author's own patterns are the author's matter; a server's are not run. `undefined` if they nest too deeply to be written. */
function withSlowPatterns(schemas: Schemas): Schemas | undefined {
  try {
    return JSON.parse(JSON.stringify(schemas).replaceAll('"^a+$"', '"(a+)+$"')) as Schemas
  } catch {
    return undefined
  }
}

/** A server's schemas are data: the client says what does not fit, or leaves the tool or the check out. */
async function asServer(
  watch: Watch,
  [inputSchema, outputSchema, form]: Schemas,
  values: readonly Json[],
): Promise<string[]> {
  const complete = { resultType: 'complete', ttlMs: 100_000, cacheScope: 'private' }
  const asks = {
    resultType: 'input_required',
    inputRequests: {
      q: { method: 'elicitation/create', params: { mode: 'form', message: 'm', requestedSchema: form } },
    },
    requestState: 's',
  }
  const words: string[] = []
  let calls = 0
  const dispatch = async (message: unknown): Promise<{ text: string }> => {
    const { id, method, params } = message as { id: number; method: string; params: { requestState?: string } }
    calls += 1
    const done = { ...complete, content: [], structuredContent: values[calls % values.length] }
    const result =
      method === 'server/discover'
        ? { ...complete, supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }
        : method === 'tools/list'
          ? { ...complete, tools: [{ name: 't', inputSchema, outputSchema }] }
          : params.requestState === undefined && calls % 2 === 0
            ? asks
            : done
    return { text: JSON.stringify({ jsonrpc: '2.0', id, result }) }
  }
  const onElicit = () => ({
    action: 'accept' as const,
    content: (isObject(values[0]) ? values[0] : {}) as Record<string, unknown>,
  })
  const connected = await connect({ dispatch }, { onElicit, timeoutMs: 5_000, maxRounds: 3, logger: watch.logger })
  for (const act of [() => connected.listTools(), () => connected.callTool('t'), () => connected.callTool('t')]) {
    try {
      await act()
      words.push('client done')
    } catch (error) {
      if (!(error instanceof RallyError)) watch.report('internal', `The client failed with ${stackOf(error)}`)
      words.push(`client ${String(Reflect.get(error as object, 'code'))}`)
    }
  }
  await connected.close()
  return words
}
