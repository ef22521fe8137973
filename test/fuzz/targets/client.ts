// A hostile server against the client: in memory, over HTTP by either way to send requests, and over standard streams.
import type { Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RallyError } from 'mcp-rally'
import type { AppLike, Client, ClientOptions, PendingCall, ServerAddress } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import type { Json } from '../json.ts'
import { isObject, mutateCharacters, mutateText, oddString, parsed } from '../json.ts'
import { OLDER_REVISIONS } from '../messages.ts'
import type { Random } from '../random.ts'
import { baseAnswers, NOTES } from '../server-answers.ts'
import type { Watch } from '../target.ts'
import { clipped, sideBySide, stackOf } from '../target.ts'

type Reply = {
  status: number
  type: string
  headers: [string, string][]
  piece: number
  edits: { at: number; add: string }[]
  ends: boolean
}
type Input = {
  wire: string
  revision: string
  calls: string[]
  /** For each method the texts of its responses, in order, the last one again and again. `"%id%"` is the id of the request. */
  answers: [string, string][]
  /** Sent before each response, where the wire has a way. */
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
const TYPES = [
  'application/json',
  'text/event-stream',
  'text/event-stream',
  'text/html',
  'APPLICATION/JSON; charset="utf-8"',
  '',
]
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
    const reply: Reply = {
      status: 200,
      type: random.pick(TYPES.slice(0, 2)),
      headers: [],
      piece: random.pick([0, 0, 1, 9]),
      edits: [],
      ends: true,
    }
    return {
      wire,
      revision: older ?? random.pick(['', '2026-07-28']),
      calls,
      answers: baseAnswers(random, older).filter(([method]) => methods.has(method)),
      notes: random.chance(0.3) ? [random.pick(NOTES)] : [],
      reply,
    }
  },
  mutate(random, input, other) {
    const roll = random.int(10)
    if (roll === 0) return { ...input, reply: mutateReply(random, input.reply) }
    if (roll === 1)
      return {
        ...input,
        calls: [...input.calls, ...other.calls].slice(-4),
        answers: [...input.answers, ...other.answers].slice(-30),
      }
    if (roll === 2)
      return { ...input, notes: [...input.notes.slice(-3), mutateText(random, random.pick(NOTES), random.pick(NOTES))] }
    if (roll === 3) return { ...input, answers: [...input.answers, random.pick(other.answers)].slice(-20) }
    const at = random.int(input.answers.length)
    const [method, text] = input.answers[at] ?? ['', '']
    return {
      ...input,
      answers: input.answers.with(at, [method, mutateText(random, text, random.pick(other.answers)[1])]),
    }
  },
  async open(watch) {
    const hostile = new HostileHttp()
    await hostile.listen()
    return {
      async run(input) {
        const script = new Script(input)
        const path = hostile.add(script)
        const address = addressOf(input, script, path)
        const words = await converse(watch, address, optionsOf(watch, input, script), input, script)
        hostile.remove(path)
        return [`${input.wire} ${input.revision}`, ...words]
      },
      close: () => hostile.close(),
    }
  },
})

function mutateReply(random: Random, reply: Reply): Reply {
  const roll = random.int(6)
  if (roll === 0)
    return { ...reply, status: random.pick([200, 202, 204, 301, 400, 401, 403, 404, 405, 429, 500, 503, 599]) }
  if (roll === 1)
    return {
      ...reply,
      type: random.chance(0.7) ? random.pick(TYPES) : mutateCharacters(random, reply.type, 'text/event-stream'),
    }
  if (roll === 2) return { ...reply, headers: [...reply.headers.slice(-2), random.pick(HEADERS)] }
  if (roll === 3) return { ...reply, piece: random.pick([0, 1, 2, 50]) }
  if (roll === 4) return { ...reply, ends: false }
  const add = random.pick([
    '\n',
    '\r',
    '\n\n',
    ': comment\n',
    'id: \0\n',
    'data',
    'event: ping\n',
    'retry: 99999999999\n',
    '\ufeff',
    oddString(random),
  ])
  return { ...reply, edits: [...reply.edits.slice(-3), { at: random.next(), add }] }
}

const HONEST_REPLY: Reply = { status: 200, type: 'application/json', headers: [], piece: 0, edits: [], ends: true }
const HONEST = { resultType: 'complete', messages: [] }

/** What the server says next. */
class Script {
  readonly #input: Input
  readonly #used = new Map<string, number>()
  /** Whether the server has become an honest one. */
  isHonest = false

  constructor(input: Input) {
    this.#input = input
  }

  get reply(): Reply {
    return this.isHonest ? HONEST_REPLY : this.#input.reply
  }

  /** The response to a request last, what is sent before it first. */
  messages(request: Json): string[] {
    const { method: asked, id = null } = isObject(request) ? request : {}
    if (this.isHonest) return [JSON.stringify({ jsonrpc: '2.0', id, result: HONEST })]
    const method = typeof asked === 'string' ? asked : ''
    const texts = this.#input.answers.flatMap(([name, text]) => (name === method ? [text] : []))
    const index = this.#used.get(method) ?? 0
    this.#used.set(method, index + 1)
    const last = texts[Math.min(index, texts.length - 1)]
    if (id === null || last === undefined) return [...this.#input.notes]
    const filled = (text: string): string => text.replaceAll('"%id%"', JSON.stringify(id))
    return [...this.#input.notes, last].map(filled)
  }

  /** The body over HTTP, as JSON or as events, with something in it that does not belong there. */
  body(request: Json): Buffer {
    const messages = this.messages(request)
    const isStream = /event-stream/i.test(this.reply.type)
    let text = isStream
      ? messages
          .map((each, index) => `id: ${index}\nevent: message\ndata: ${each.replaceAll('\n', '\ndata: ')}\n\n`)
          .join('')
      : (messages.at(-1) ?? '')
    for (const { at, add } of this.reply.edits) {
      const place = Math.floor(at * text.length)
      text = text.slice(0, place) + add + text.slice(place)
    }
    return Buffer.from(text)
  }
}

function addressOf({ wire, answers, notes }: Input, script: Script, url: string): ServerAddress {
  if (wire === 'stdio')
    return { command: process.execPath, args: ['-e', STDIO_SERVER, JSON.stringify({ answers, notes })] }
  if (wire === 'memory') return inMemory(script)
  return url
}

function inMemory(script: Script): AppLike {
  return {
    async dispatch(message, { notify }) {
      const messages = script.messages(message as Json)
      for (const note of messages.slice(0, -1)) notify(note)
      const text = messages.at(-1)
      return text === undefined || !script.reply.ends ? undefined : { text }
    },
  }
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
      check(
        isObject(form) && isObject(form.properties) && typeof message === 'string',
        `the form ${clipped(JSON.stringify(form))}`,
      )
      return {
        action: 'accept',
        content: Object.fromEntries(
          Object.entries(form.properties).map(([key, field]) => [
            key,
            field.type === 'boolean' ? true : field.type === 'string' ? 'x' : 1,
          ]),
        ),
      }
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

async function fetched(script: Script, body: string | undefined): Promise<Response> {
  const { status, type, headers, piece, ends } = script.reply
  const bytes = script.body(parsed(body ?? 'null') ?? null)
  let at = 0
  const size = piece === 0 ? Math.max(bytes.length, 1) : piece
  const stream = new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(new Uint8Array(bytes.subarray(at, (at += size))))
      else if (ends) controller.close()
    },
  })
  try {
    return new Response(status === 204 ? null : stream, { status, headers: [['Content-Type', type], ...headers] })
  } catch {
    throw new TypeError('The server said what is not HTTP.')
  }
}

/** Each script has an address of its own. */
class HostileHttp {
  readonly #scripts = new Map<string, Script>()
  #added = 0
  readonly #server: Server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('error', () => {}).on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      const script = this.#scripts.get(`http://${request.headers.host}${request.url}`)
      if (script !== undefined) answer(script, parsed(Buffer.concat(chunks).toString()) ?? null, response)
    })
  })

  add(script: Script): string {
    const url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${(this.#added += 1)}`
    this.#scripts.set(url, script)
    return url
  }

  remove(url: string): void {
    this.#scripts.delete(url)
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** Written as it is: Node would not let a server say some of it. */
function answer(script: Script, request: Json, { socket }: ServerResponse): void {
  const { status, type, headers, piece, ends } = script.reply
  const bytes = script.body(request)
  const fields = [['Content-Type', type], ['Connection', 'close'], ...headers]
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`)
  socket?.on('error', () => {}).write(Buffer.from(`HTTP/1.1 ${status} X\r\n${lines.join('')}\r\n`, 'latin1'))
  const size = piece === 0 ? bytes.length : Math.max(piece, Math.ceil(bytes.length / 200))
  for (let at = 0; at < bytes.length; at += size) socket?.write(bytes.subarray(at, at + size))
  if (ends) socket?.end()
}

/** Runs by `node -e`. */
const STDIO_SERVER = `
const { answers, notes } = JSON.parse(process.argv[1])
const used = {}
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { method, id } = JSON.parse(line)
  const texts = answers.filter(([name]) => name === method).map(([, text]) => text)
  const index = used[method] = (used[method] ?? -1) + 1
  const answer = texts[Math.min(index, texts.length - 1)]
  for (const text of id === undefined || answer === undefined ? notes : [...notes, answer]) console.log(text.replaceAll('"%id%"', JSON.stringify(id)))
})`

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
