// A hostile server against the client: in memory, over HTTP by either way to send requests, and over standard streams.
import { RallyError } from 'mcp-rally'
import type { Client, ClientOptions, PendingCall, ServerAddress } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { isObject, mutateCharacters, mutateText, oddString, parsed } from '../harness/json.ts'
import type { Random } from '../harness/random.ts'
import type { Watch } from '../harness/target.ts'
import { clipped, sideBySide, stackOf } from '../harness/target.ts'
import { baseAnswers, NOTES } from '../hostile/answers.ts'
import type { Reply } from '../hostile/server.ts'
import { addressOf, fetched, HostileHttp, Script } from '../hostile/server.ts'
import { OLDER_REVISIONS } from '../wire/messages.ts'

type Input = {
  wire: string
  revision: string
  calls: string[]
  answers: [method: string, text: string][]
  notes: string[]
  reply: Reply
}

const WIRES = ['memory', 'memory', 'fetch', 'fetch', 'http']
/** What the client can be asked for, and the methods that its server then sees. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  callTool: ['tools/call', 'tools/list', 'tasks/get', 'tasks/update'],
  startTool: ['tools/call', 'tasks/get'],
  rounds: ['tools/call', 'tasks/get'],
  listTools: ['tools/list'],
  listPrompts: ['prompts/list'],
  listResources: ['resources/list'],
  listResourceTemplates: ['resources/templates/list'],
  getPrompt: ['prompts/get'],
  readResource: ['resources/read'],
  complete: ['completion/complete'],
  subscribe: ['subscriptions/listen', 'resources/subscribe', 'resources/unsubscribe'],
  task: ['tasks/get', 'tasks/update', 'tasks/cancel'],
  updates: ['tasks/get', 'tasks/cancel'],
  // What was saved of a call is a file that anybody may have changed.
  resume: ['saved', 'tools/call'],
}
const BEFORE = ['server/discover', 'initialize', 'logging/setLevel', 'ping']
const TYPES = ['application/json', 'text/event-stream', 'text/html', 'APPLICATION/JSON; charset="utf-8"', '']
const STATUSES = [200, 202, 204, 301, 400, 401, 403, 404, 405, 429, 500, 503, 599]
const ODD_EVENTS = ['\n', '\r', '\n\n', ': x\n', 'id: \0\n', 'data', 'event: x\n', 'retry: 99999999999\n', '\ufeff']
const HEADERS: [string, string][] = [
  ['Mcp-Session-Id', 's'.repeat(40)],
  ['Mcp-Session-Id', 'ä'],
  ['Content-Length', '3'],
  ['Location', 'http://127.0.0.1:1/'],
  ['WWW-Authenticate', 'Bearer error="x", resource_metadata="http://127.0.0.1:1/'],
  ['Retry-After', '-1'],
  ['Content-Encoding', 'gzip'],
]

export const client = sideBySide<Input>(8, {
  name: 'client',
  limitMs: 15_000,
  generate(random) {
    const older = random.chance(0.35) ? random.pick(OLDER_REVISIONS) : undefined
    const wire = random.chance(0.02) ? 'stdio' : random.pick(older === undefined ? WIRES : ['fetch', 'http'])
    const calls = random.list(1, 3, () => random.pick(Object.keys(CALLS)))
    const methods = new Set([...BEFORE, ...calls.flatMap((name) => CALLS[name] ?? [])])
    return {
      wire,
      revision: older ?? random.pick(['', '2026-07-28']),
      calls,
      answers: baseAnswers(random, older).filter(([method]) => methods.has(method)),
      notes: random.chance(0.3) ? [random.pick(NOTES)] : [],
      reply: {
        status: 200,
        type: random.pick(TYPES.slice(0, 2)),
        headers: [],
        piece: random.pick([0, 0, 1, 9]),
        edits: [],
        ends: true,
      },
    }
  },
  mutate(random, input, other) {
    const { answers, calls, notes } = input
    const at = random.int(answers.length)
    const [method, text] = answers[at] ?? ['', '']
    const withChange = (): Input => {
      return { ...input, answers: answers.with(at, [method, mutateText(random, text, random.pick(other.answers)[1])]) }
    }
    return random.oneOf<Input>([
      withChange,
      withChange,
      withChange,
      withChange,
      () => ({ ...input, reply: mutateReply(random, input.reply) }),
      () => ({ ...input, notes: [...notes.slice(-3), mutateText(random, random.pick(NOTES), random.pick(NOTES))] }),
      () => ({
        ...input,
        calls: [...calls, ...other.calls].slice(-4),
        answers: [...answers, ...other.answers].slice(-30),
      }),
    ])
  },
  async open(watch) {
    const hostile = new HostileHttp()
    await hostile.listen()
    return {
      async run(input) {
        const script = new Script(input)
        const path = hostile.add(script)
        const address = addressOf(input.wire, input, script, path)
        const words = await converse(watch, address, optionsOf(watch, input, script), input, script)
        hostile.remove(path)
        return [`${input.wire} ${input.revision}`, ...words]
      },
      close: () => hostile.close(),
    }
  },
})

function mutateReply(random: Random, reply: Reply): Reply {
  const { headers, edits } = reply
  return random.oneOf<Reply>([
    () => ({ ...reply, status: random.pick(STATUSES) }),
    () => ({ ...reply, type: random.pick([...TYPES, mutateCharacters(random, reply.type, 'text/event-stream')]) }),
    () => ({ ...reply, headers: [...headers.slice(-2), random.pick(HEADERS)] }),
    () => ({ ...reply, piece: random.pick([0, 1, 2, 50]) }),
    () => ({ ...reply, ends: false }),
    () => ({
      ...reply,
      edits: [...edits.slice(-3), { at: random.next(), add: random.pick([...ODD_EVENTS, oddString(random)]) }],
    }),
  ])
}

function optionsOf(watch: Watch, { wire, revision }: Input, script: Script): ClientOptions {
  const check = (isRight: boolean, what: string): void => {
    if (!isRight) watch.report('invalid', 'An answerer was given something else', what)
  }
  return {
    ...(revision !== '' && { revision }),
    ...(wire === 'fetch' && { fetch: (_url, init) => fetched(script, init.body) }),
    // A child takes longer to start than the rest takes in all.
    timeoutMs: wire === 'stdio' ? 2_000 : 60,
    taskMs: 200,
    maxRounds: 4,
    maxResponseBytes: 200_000,
    logger: { warn: () => {}, error: (message, details) => watch.logger.error(message, details) },
    onLog: () => {},
    onElicit({ form, message }) {
      check(isObject(form) && isObject(form.properties) && typeof message === 'string', clipped(JSON.stringify(form)))
      const values: Record<string, unknown> = { boolean: true, string: 'x', array: ['x'] }
      const fields = Object.entries(form.properties).map(([key, { type }]) => [key, values[type] ?? 1] as const)
      return { action: 'accept', content: Object.fromEntries(fields) }
    },
    onVisit({ url }) {
      check(/^https?:\/\/[^/\s]/.test(url), `the address ${JSON.stringify(url)}`)
      return { action: 'accept' }
    },
    onSample({ messages }) {
      check(Array.isArray(messages), 'no messages')
      return { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hello' } }
    },
    onRoots: () => [{ uri: 'file:///a' }],
  }
}

async function converse(
  watch: Watch,
  address: ServerAddress,
  options: ClientOptions,
  { calls, answers, wire }: Input,
  script: Script,
): Promise<string[]> {
  const [, saved = ''] = answers.find(([name]) => name === 'saved') ?? []
  const words: string[] = []
  const attempt = async <T>(name: string, run: () => Promise<T>): Promise<T | undefined> => {
    try {
      const value = await run()
      words.push(`${name} done`)
      return value
    } catch (error) {
      words.push(`${name} ${wordOf(watch, error)}`)
      return undefined
    }
  }
  const connected = await attempt('connect', () => connect(address, options))
  if (connected === undefined) return words
  const called = calls.map(async (name) => {
    const value = await attempt(name, () => perform(connected, name, parsed(saved)))
    if (value !== undefined && !isPromised(name, value)) {
      watch.report('invalid', `${name} returned something else`, clipped(JSON.stringify(value)))
    }
  })
  await Promise.all(called)
  // A child may have ended, and an older session may be over.
  if (wire !== 'stdio' && connected.revision === '2026-07-28') {
    script.isHonest = true
    try {
      await connected.getPrompt('p', {}, { timeoutMs: 5_000 })
    } catch (error) {
      watch.report('invalid', 'The client is of no use any more', stackOf(error))
    }
  }
  await attempt('close', () => connected.close())
  return words
}

async function perform(connected: Client, name: string, saved: unknown): Promise<unknown> {
  switch (name) {
    case 'callTool':
      return connected.callTool('t', { a: 1 }, { onProgress: () => {} })
    case 'startTool':
      return connected.startTool('t', {})
    case 'rounds': {
      let last: unknown
      for await (const round of connected.rounds({ tool: 't' })) last = round
      return last
    }
    case 'listTools':
      return connected.listTools()
    case 'listPrompts':
      return connected.listPrompts()
    case 'listResources':
      return connected.listResources()
    case 'listResourceTemplates':
      return connected.listResourceTemplates()
    case 'getPrompt':
      return connected.getPrompt('p', { a: 'b' })
    case 'readResource':
      return connected.readResource('note://a')
    case 'complete':
      return connected.complete({ type: 'ref/prompt', name: 'p' }, { name: 'a', value: 'b' })
    case 'task':
      return connected.task('a-task').result()
    case 'updates': {
      const task = connected.task('a-task')
      await task.status()
      for await (const _ of task.updates());
      return task.cancel()
    }
    case 'resume':
      return connected.resume(saved as PendingCall)
    default: {
      const changes: unknown[] = []
      const signal = AbortSignal.timeout(40)
      for await (const change of connected.subscribe({ tools: true, uris: ['note://a'] }, { signal }))
        changes.push(change)
      return changes
    }
  }
}

/** Whether a value has the form that the types of the client promise, as far as the client checks it. */
function isPromised(name: string, value: unknown): boolean {
  if (name.startsWith('list') || name === 'subscribe')
    return Array.isArray(value) && value.every((each) => isObject(each))
  if (!isObject(value)) return false
  if (name === 'callTool' || name === 'task') return Array.isArray(value['content'])
  if (name === 'getPrompt') return Array.isArray(value['messages'])
  if (name === 'readResource') return Array.isArray(value['contents'])
  if (name === 'complete') return Array.isArray(value['values'])
  return true
}

/** A call may fail in documented ways only, and says so in a few words. */
function wordOf(watch: Watch, error: unknown): string {
  if (!(error instanceof RallyError)) watch.report('internal', `The client failed with ${stackOf(error)}`)
  if (!(error instanceof Error)) return 'thrown'
  const { message } = error
  if (message.length > 10_000) watch.report('invalid', `The error has ${message.length} characters`, clipped(message))
  if (/Cannot (?:read|set) propert|is not a function|is not iterable|Maximum call stack/.test(message)) {
    watch.report('internal', `The client failed with ${stackOf(error)}`)
  }
  const code: unknown = Reflect.get(error, 'code')
  return `${String(code)} ${message.replaceAll(/"[^"]*"|\d+|[^ -~]/g, '_').slice(0, 50)}`
}
