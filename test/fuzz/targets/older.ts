// Sessions of 2025-11-25, 2025-06-18, 2025-03-26 and the two drafts, over HTTP and standard streams.
import type { Authenticate, Rally } from 'mcp-rally'
import { fuzzApp, SCOPED } from '../wire/app.ts'
import { mutateCharacters, mutateText, oddString, parsed } from '../harness/json.ts'
import { fateOf, META_STATE, OLDER_REVISIONS, Slots } from '../wire/messages.ts'
import { olderProgram } from '../wire/programs.ts'
import type { Random } from '../harness/random.ts'
import { readEvents } from '../wire/sse.ts'
import type { Watch } from '../harness/target.ts'
import { clipped, target } from '../harness/target.ts'
import { Asked, checkSent } from '../wire/check.ts'
import { mutateList } from './dispatch.ts'
import { overStdio, quiet } from './stdio.ts'

/** A text of `GET` opens a stream, with the headers; anything else is posted. */
type Step = { text: string; headers: [string, string][] }
type Input = { wire: string; revision: string; principal: string | null; steps: Step[] }

const SESSION: [string, string] = ['Mcp-Session-Id', '%session%']
const HEADERS: [string, string][] = [
  ['Last-Event-ID', '%event%'],
  ['Last-Event-ID', 'c:1'],
  ['Mcp-Session-Id', 'se1.AAAA'],
  ['MCP-Protocol-Version', '2025-06-18'],
  ['MCP-Protocol-Version', '2026-07-28'],
  ['Mcp-Method', 'tools/call'],
  ['Mcp-Name', 'deploy'],
  ['Accept', 'application/json'],
  ['X-User', 'bob'],
]

const authenticate: Authenticate = (request) => ({ principal: request.header('x-user') || 'nobody' })

export const older = target<Input>({
  name: 'older',
  // Streams and mailboxes are kept for a second, 32 MiB of each at most.
  keepsBytes: 80 * 1024 * 1024,
  generate(random) {
    const revision = random.pick(OLDER_REVISIONS)
    const texts = olderProgram(random, revision, random.chance(0.4))
    const steps = texts.flatMap((text, index): Step[] => {
      const step = { text, headers: index === 0 ? [] : [SESSION] }
      const rest: Step = { text: 'GET', headers: [SESSION, ['Last-Event-ID', '%event%']] }
      // What follows an answer that carries its call is fetched.
      return text.includes(META_STATE) && random.chance(0.7) ? [step, rest] : [step]
    })
    if (random.chance(0.2)) steps.push({ text: 'GET', headers: [SESSION] })
    return { wire: random.pick(['fetch', 'fetch', 'stdio']), revision, principal: random.pick([null, 'ada']), steps }
  },
  mutate(random, input, other) {
    if (random.chance(0.15)) return { ...input, steps: mutateList(random, input.steps, other.steps) }
    const at = random.int(input.steps.length)
    const step = input.steps[at] as Step
    return { ...input, steps: input.steps.with(at, mutateStep(random, step, random.pick(other.steps))) }
  },
  async open(watch) {
    const apps = [
      fuzzApp(watch, {}, SCOPED),
      fuzzApp(watch, { http: { authenticate } }, SCOPED),
      fuzzApp(watch),
    ] as const
    return {
      async run(input) {
        const { wire, revision, principal, steps } = input
        // What was changed may have begun a session of another revision.
        const begins = steps.filter(({ text }) => text.includes('initialize"'))
        const isKnown = begins.length === 1 && begins[0]?.text.includes(`"protocolVersion":"${revision}"`)
        const known = isKnown === true ? revision : 'any'
        const lines = steps.flatMap(({ text }) => (text === 'GET' ? [] : [text]))
        if (wire === 'stdio') return overStdio(watch, apps[2], { lines, end: '\n', piece: 0 }, known)
        return new Conversation(watch, apps[principal === null ? 0 : 1], known, principal).run(steps)
      },
      async close() {
        for (const app of apps) app.interrupt()
        await Promise.all(apps.map((app) => app.idle()))
      },
    }
  },
})

function mutateStep(random: Random, { text, headers }: Step, other: Step): Step {
  const at = random.int(headers.length + 1)
  const roll = random.int(8)
  if (roll === 0) return { text, headers: headers.toSpliced(at, 0, random.pick(HEADERS)) }
  if (roll === 1) return { text, headers: headers.toSpliced(at, 1) }
  if (roll === 2) {
    const [name, value] = headers[at] ?? random.pick(HEADERS)
    return { text, headers: headers.toSpliced(at, 1, [name, mutateCharacters(random, value, oddString(random))]) }
  }
  if (text === 'GET') return { text, headers }
  if (roll === 3) return { text: `[${text},${other.text === 'GET' ? '' : other.text}]`, headers }
  return { text: mutateText(random, text, other.text), headers }
}

/** One client over HTTP, with the streams that it reads beside what it sends. */
class Conversation {
  readonly #watch: Watch
  readonly #app: Rally
  readonly #revision: string
  readonly #principal: string | null
  readonly #slots = new Slots()
  readonly #asked = new Asked()
  readonly #fates: string[] = []
  readonly #open = new Set<ReadableStreamDefaultReader<Uint8Array>>()

  constructor(watch: Watch, app: Rally, revision: string, principal: string | null) {
    this.#watch = watch
    this.#app = app
    this.#revision = revision
    this.#principal = principal
  }

  async run(steps: readonly Step[]): Promise<string[]> {
    for (const step of steps) {
      const request = this.#requestOf(step)
      if (request === undefined) continue
      // A request that waits for an answer has none before the next step.
      void this.#exchange(request).catch((error: unknown) => this.#watch.add(error))
      await quiet(() => this.#fates.length)
    }
    await Promise.all([...this.#open].map((reader) => reader.cancel()))
    return this.#fates
  }

  #requestOf({ text, headers }: Step): Request | undefined {
    const isGet = text === 'GET'
    const body = this.#slots.fill(text)
    try {
      const all = new Headers({ Accept: 'application/json, text/event-stream' })
      if (!isGet) all.set('Content-Type', 'application/json')
      if (this.#principal !== null) all.set('X-User', this.#principal)
      for (const [name, value] of headers) all.set(name, this.#slots.fill(value, { raw: true }))
      if (!isGet) this.#asked.note(body)
      return new Request('http://localhost/mcp', isGet ? { headers: all } : { method: 'POST', headers: all, body })
    } catch {
      // No client could make it.
      return undefined
    }
  }

  async #exchange(request: Request): Promise<void> {
    const response = await this.#app.fetch(request)
    const { status, headers } = response
    this.#slots.set('session', headers.get('mcp-session-id') ?? undefined)
    this.#fates.push(String(status))
    if (headers.get('content-type') === 'text/event-stream') return this.#read(response)
    const text = await response.text()
    if (status >= 500 && status !== 503) this.#watch.report('internal', `Status ${status}`, clipped(text))
    if (text !== '') this.#take(text)
  }

  async #read(response: Response): Promise<void> {
    const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
    this.#open.add(reader)
    const decoder = new TextDecoder()
    let text = ''
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      text += decoder.decode(next.value, { stream: true })
      const end = text.lastIndexOf('\n\n')
      if (end === -1) continue
      for (const { id, data } of readEvents(text.slice(0, end + 2))) {
        this.#slots.set('event', id)
        if (data) this.#take(data)
      }
      text = text.slice(end + 2)
    }
    this.#open.delete(reader)
  }

  #take(text: string): void {
    const message = checkSent(this.#watch, text, this.#asked, this.#revision)
    for (const each of Array.isArray(message) ? message : [message]) {
      this.#slots.note(each)
      this.#fates.push(fateOf(each))
    }
    if (parsed(text) === undefined) this.#fates.push('broken')
  }
}
