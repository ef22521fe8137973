// Sealed values of every purpose, forged, spliced, cut, replayed, or used by somebody else, for something else, at another time.
import type { Authenticate, Io, Rally } from 'mcp-rally'
import { MemoryOnceStore, rally } from 'mcp-rally'
import { z } from 'zod'
import { request } from '../../wire/messages.ts'
import type { Json } from '../json.ts'
import { isObject, parsed } from '../json.ts'
import { META_STATE } from '../messages.ts'
import type { Random } from '../random.ts'
import type { Watch } from '../target.ts'
import { clipped, Finding, target } from '../target.ts'
import { readEvents } from '../sse.ts'

const PURPOSES = ['state', 'draft', 'session', 'ask', 'event'] as const
const PRINCIPALS = [null, 'ada', 'bob', 'ada ', 'null', 'undefined']

/** Who sealed it, for whom and what. */
type Origin = {
  purpose: (typeof PURPOSES)[number]
  app: number
  principal: string | null
  request: number
  rounds: number
}
/** A change of the sealed text; `at` is a place in it, from 0 to 1. */
type Edit = { op: string; at: number; value: number }
type Use = {
  purpose: Origin['purpose']
  app: number
  principal: string | null
  request: number
  sameSession: boolean
  afterMs: number
  again: string
}
/** Each variant is a list of changes, none of which leaves it genuine. */
type Input = { origin: Origin; second: Origin; variants: Edit[][]; use: Use }

const EDITS = ['flip', 'byte', 'cut', 'behead', 'prefix', 'splice', 'segment', 'append', 'twice', 'characters']
const PREFIXES = ['rs1.', 'sr1.', 'se1.', 'ev1.', 'cu1.', 'rs2.', 'RS1.', '']
/** Of what is sealed, in bytes: key id, salt, nonce, tag, ciphertext. */
const SEGMENTS = [0, 8, 24, 36, 52, 1_000_000]
const TIMES = [0, 0, 0, 30_000, 599_000, 700_000, 80_000_000, 90_000_000, 1e12, -30_000, -120_000, -1e12]
const REQUESTS: readonly { method: string; params: { [key: string]: Json } }[] = [
  { method: 'tools/call', params: { name: 'transfer', arguments: { to: 'bob', amount: 5 } } },
  { method: 'tools/call', params: { name: 'transfer', arguments: { to: 'bob', amount: 6 } } },
  { method: 'tools/call', params: { name: 'withdraw', arguments: { to: 'bob', amount: 5 } } },
  { method: 'prompts/get', params: { name: 'transfer', arguments: { to: 'bob', amount: '5' } } },
  { method: 'resources/read', params: { uri: 'bank://transfer' } },
]
const ANSWERS: { [key: string]: Json } = { sure: { action: 'accept', content: { confirm: true } } }

/** Added to the clock of all apps here. */
let shiftMs = 0
const realNow = Date.now

export const seal = target<Input>({
  name: 'seal',
  generate(random) {
    const origin = someOrigin(random)
    const { purpose, app, principal, request: index } = origin
    // Right but for what is changed below, so that each check is what refuses it.
    const use: Use = { purpose, app, principal, request: index, sameSession: true, afterMs: 0, again: 'no' }
    return { origin, second: someOrigin(random), variants: someVariants(random), use: someUse(random, use) }
  },
  mutate(random, input, other) {
    const roll = random.int(4)
    if (roll === 0) return { ...input, use: someUse(random, input.use) }
    if (roll === 1) return { ...input, variants: [[]] }
    if (roll === 2) return { ...input, variants: someVariants(random) }
    return { ...input, origin: { ...other.origin, rounds: 1 + random.int(2) }, second: input.origin }
  },
  async open(watch) {
    Date.now = () => realNow() + shiftMs
    const banks = [
      new Bank('bank', KEYS[0]),
      new Bank('bank', KEYS[1]),
      new Bank('other', KEYS[0]),
      new Bank('third', KEYS[0], true),
    ]
    for (const key of KEYS) watch.keepSecret(key)
    return {
      async run({ origin, second, variants, use }) {
        if (![origin, second, use].every(({ purpose }) => PURPOSES.includes(purpose)))
          throw new Error('No such purpose.')
        const minted = await bankAt(banks, origin.app).mint(origin)
        const spare = await bankAt(banks, second.app).mint(second)
        shiftMs = use.afterMs
        try {
          const fates = new Set<string>()
          for (const edits of variants) {
            const text = edits.reduce((changed, edit) => edited(changed, edit, spare.text), minted.text)
            fates.add(await present(bankAt(banks, use.app), watch, { origin, second, use, minted, spare, text }))
          }
          return [...fates].toSorted()
        } finally {
          shiftMs = 0
        }
      },
      async close() {
        Date.now = realNow
        for (const bank of banks) bank.close()
      },
    }
  },
})

const KEYS = ['the first key of the fuzzed banks, long enough', 'another key of a fuzzed bank, long enough as well']

interface Minted {
  readonly text: string
  /** What the text belongs to, where that is a session. */
  readonly session: string
  readonly askId: unknown
}

interface Presented {
  readonly origin: Origin
  readonly second: Origin
  readonly use: Use
  readonly minted: Minted
  readonly spare: Minted
  readonly text: string
}

async function present(bank: Bank, watch: Watch, presented: Presented): Promise<string> {
  const { origin, second, use, minted, spare, text } = presented
  // A draft has sessions of its own; in others its state is not looked at.
  const isKept = use.sameSession && minted.session !== '' && (use.purpose === 'draft') === (origin.purpose === 'draft')
  const session = isKept ? minted.session : await bank.initialize(use.principal, use.purpose)
  // A header has no spaces around its value.
  const arrives =
    use.purpose === 'session' || use.purpose === 'event' ? text.replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, '') : text
  // A splice may come to the whole of the other one.
  const isGood =
    (arrives === minted.text && isGoodFor(origin, use, isKept)) ||
    (arrives === spare.text && isGoodFor(second, use, false))
  const fates: string[] = []
  for (const again of use.again === 'no' ? [''] : ['', use.again]) {
    bank.ran = 0
    const said = await bank.use(use, text, session, minted.askId, again === 'other')
    if (said === undefined) return 'unsayable'
    watch.checkLeaks(said, text)
    const isTaken = !isRefusal(said)
    if (!isTaken) checkSameWords(watch, use.purpose, said)
    // With `once`, what was used already is good for the same answers alone.
    const isOwed =
      isGood && arrives === minted.text && origin.purpose === use.purpose && !(bank.once && again === 'other')
    const what = `a ${origin.purpose} as a ${use.purpose} ${again}`
    if (isTaken && !isGood) throw new Finding('forgery', `Accepted ${what}`, clipped(said))
    if (!isTaken && bank.ran > 0) throw new Finding('forgery', `A handler ran, and refused was ${what}`, clipped(said))
    if (!isTaken && isOwed) throw new Finding('invalid', `Refused, and genuine, was ${what}`, clipped(said))
    fates.push(`${what} ${isTaken ? 'taken' : said.slice(0, 3)}`)
  }
  return fates.join()
}

/** Whether what was sealed so, and not changed, is to be accepted. */
function isGoodFor(origin: Origin, use: Use, isSameSession: boolean): boolean {
  const { purpose, app, principal, request: index } = origin
  // The clocks of a fleet may differ by a minute.
  if (use.afterMs < -60_000 || use.afterMs > (purpose === 'session' ? 86_400_000 : 600_000)) return false
  // The state of a call is the caller's, in whichever revision the caller goes on with it.
  const ofCall = new Set(['state', 'draft'])
  const isSamePurpose = purpose === use.purpose || (ofCall.has(purpose) && ofCall.has(use.purpose))
  if (!isSamePurpose || app !== use.app || principal !== use.principal) return false
  if (ofCall.has(purpose)) return index === use.request
  return purpose === 'session' || isSameSession
}

/** `said` is the status and the text of a response. */
function isRefusal(said: string): boolean {
  return /^40[04] |^200 \{[^{]*"error":\{"code":-32602,/.test(said)
}

/** By status, the first of each: every later one must be the same but for its id, so that it does not tell why. */
const refusals = new Map<string, string>()

function checkSameWords(watch: Watch, purpose: string, said: string): void {
  // An event may also be one that is not kept any more.
  if (purpose === 'event') return
  const text = said.replace(/"id":[^,]+,/, '')
  const key = `${purpose} ${said.slice(0, 3)}`
  const first = refusals.get(key) ?? text
  refusals.set(key, first)
  if (first !== text) watch.report('leak', `Two refusals of a ${purpose} differ`, `${first} and ${text}`)
}

const authenticate: Authenticate = (from) => ({ principal: decodeURIComponent(from.header('x-user') ?? '') })

/** An app with things that ask, and a client of each era. Anonymous callers have an instance that authenticates nobody. */
class Bank {
  readonly once: boolean
  /** How often a handler has run. */
  ran = 0
  readonly #known: Rally
  readonly #anonymous: Rally

  constructor(name: string, key = '', once = false) {
    this.once = once
    const store = new MemoryOnceStore()
    const options = { name, version: '1', keys: [key], logger: { warn() {}, error() {} }, ...(once && { once: store }) }
    const revisions = ['2026-06-XX'] as const
    this.#known = this.#registered(rally({ ...options, revisions, http: { authenticate } }))
    this.#anonymous = this.#registered(rally({ ...options, revisions }))
  }

  #registered(app: Rally): Rally {
    const asks = async (io: Pick<Io, 'confirm'>): Promise<string> => {
      this.ran += 1
      return (await io.confirm('sure', 'Sure?')) && (await io.confirm('again', 'Again?')) ? 'Done' : 'Not done'
    }
    const input = z.object({ to: z.string(), amount: z.number() })
    for (const tool of ['transfer', 'withdraw']) app.tool(tool, { input }, (_args, io) => asks(io))
    const words = z.object({ to: z.string(), amount: z.string() })
    app.prompt('transfer', { arguments: words }, (_args, io) => asks(io))
    return app.resource('bank://transfer', { name: 'transfer' }, (io) => asks(io))
  }

  close(): void {
    this.#known.interrupt()
    this.#anonymous.interrupt()
  }

  #appFor(principal: string | null): Rally {
    return principal === null ? this.#anonymous : this.#known
  }

  async mint(origin: Origin): Promise<Minted> {
    const { purpose, principal, rounds } = origin
    const wanted = REQUESTS[origin.request % REQUESTS.length] as (typeof REQUESTS)[number]
    if (purpose === 'state') {
      let text = ''
      for (let round = 0; round < rounds; round += 1) {
        const retry = round === 0 ? {} : { requestState: text, inputResponses: ANSWERS }
        const reply = await this.#appFor(principal).dispatch(request(wanted.method, { ...wanted.params, ...retry }), {
          principal: principal ?? undefined,
        })
        text = textAt(parsed(reply?.text ?? ''), 'result', 'requestState')
      }
      return { text, session: '', askId: 0 }
    }
    const session = await this.initialize(principal, purpose)
    if (purpose === 'session') return { text: session, session, askId: 0 }
    const response = await this.#post(principal, { jsonrpc: '2.0', id: 1, ...wanted }, session)
    if (purpose === 'draft')
      return { text: textAt(parsed(await response.text()), 'result', 'requestState'), session, askId: 0 }
    const events = readEvents(await response.text())
    const { id: eventId = '', data = '' } = events.at(-1) ?? {}
    const question = parsed(data)
    const askId = isObject(question) ? question['id'] : 0
    return { text: purpose === 'event' ? eventId : textAt(question, 'params', '_meta', META_STATE), session, askId }
  }

  /** The status and the text that come back; `undefined` where no client could send it. */
  async use(use: Use, text: string, session: string, askId: unknown, isOther: boolean): Promise<string | undefined> {
    const { purpose, principal } = use
    const { method, params } = REQUESTS[use.request % REQUESTS.length] as (typeof REQUESTS)[number]
    const inputResponses = isOther ? { sure: { action: 'decline' } } : ANSWERS
    try {
      if (purpose === 'state') {
        const retry = request(method, { ...params, requestState: text, inputResponses })
        const reply = await this.#appFor(principal).dispatch(retry, { principal: principal ?? undefined })
        return `200 ${reply?.text}`
      }
      if (purpose === 'draft') {
        const retry = { jsonrpc: '2.0', id: 2, method, params: { ...params, requestState: text, inputResponses } }
        return await wordsOf(await this.#post(principal, retry, session))
      }
      if (purpose === 'session')
        return await wordsOf(await this.#post(principal, { jsonrpc: '2.0', id: 2, method: 'ping' }, text))
      if (purpose === 'ask') {
        const result = { ...(ANSWERS['sure'] as object), _meta: { [META_STATE]: text } }
        return await wordsOf(await this.#post(principal, { jsonrpc: '2.0', id: askId, result }, session))
      }
      const headers = { ...this.#headers(principal), 'Mcp-Session-Id': session, 'Last-Event-ID': text }
      return await wordsOf(await this.#appFor(principal).fetch(new Request('http://localhost/mcp', { headers })))
    } catch (error) {
      // A header cannot hold every text.
      if (error instanceof TypeError && /header|ByteString/i.test(error.message)) return undefined
      throw error
    }
  }

  /** The session of a draft, or of a client that carries its calls. */
  async initialize(principal: string | null, purpose: string): Promise<string> {
    const isDraft = purpose === 'draft'
    const protocolVersion = isDraft ? '2026-06-XX' : '2025-11-25'
    const capabilities = { elicitation: {}, ...(!isDraft && { state: { scopes: ['request'] } }) }
    const params = { protocolVersion, capabilities, clientInfo: { name: 'fuzz', version: '1' } }
    const response = await this.#post(principal, { jsonrpc: '2.0', id: 0, method: 'initialize', params })
    return response.headers.get('mcp-session-id') ?? ''
  }

  #post(principal: string | null, message: object, session?: string): Promise<Response> {
    const headers = {
      ...this.#headers(principal),
      'Content-Type': 'application/json',
      ...(session !== undefined && { 'Mcp-Session-Id': session }),
    }
    return this.#appFor(principal).fetch(
      new Request('http://localhost/mcp', { method: 'POST', headers, body: JSON.stringify(message) }),
    )
  }

  #headers(principal: string | null): Record<string, string> {
    return {
      Accept: 'application/json, text/event-stream',
      ...(principal !== null && { 'X-User': encodeURIComponent(principal) }),
    }
  }
}

/** A stream that was accepted is not read: what follows an answer may take its time. */
async function wordsOf(response: Response): Promise<string> {
  if (response.headers.get('content-type') !== 'text/event-stream') return `${response.status} ${await response.text()}`
  await response.body?.cancel()
  return `${response.status} a stream`
}

function bankAt(banks: readonly Bank[], index: number): Bank {
  return banks[index % banks.length] as Bank
}

function textAt(value: unknown, ...path: string[]): string {
  for (const key of path) value = isObject(value) ? value[key] : undefined
  if (typeof value === 'string') return value
  throw new Error(`Nothing was sealed: there is no ${path.join('.')}.`)
}

function someOrigin(random: Random): Origin {
  const purpose = random.pick(PURPOSES)
  return {
    purpose,
    app: random.int(4),
    principal: random.pick(PRINCIPALS),
    request: random.int(REQUESTS.length),
    rounds: 1 + random.int(2),
  }
}

/** With at most one thing changed, and often none. */
function someUse(random: Random, use: Use): Use {
  switch (random.int(12)) {
    case 0:
      return { ...use, purpose: random.pick(PURPOSES) }
    case 1:
      return { ...use, app: random.int(4) }
    case 2:
      return { ...use, principal: random.pick(PRINCIPALS) }
    case 3:
      return { ...use, request: random.int(REQUESTS.length) }
    case 4:
      return { ...use, sameSession: false }
    case 5:
    case 6:
      return { ...use, afterMs: random.pick(TIMES) }
    case 7:
      return { ...use, again: random.pick(['same', 'other']) }
    default:
      return use
  }
}

function someVariants(random: Random): Edit[][] {
  return random.list(1, 10, () => random.list(0, 2, () => someEdit(random)))
}

function someEdit(random: Random): Edit {
  return { op: random.pick(EDITS), at: random.next(), value: random.int(256) }
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

function edited(text: string, { op, at, value }: Edit, other: string): string {
  const place = Math.floor(at * text.length)
  const bytes = (): Buffer => Buffer.from(text.slice(4), 'base64url')
  const sealed = (changed: Buffer): string => text.slice(0, 4) + changed.toString('base64url')
  switch (op) {
    case 'flip':
      return (
        text.slice(0, place) +
        (ALPHABET[(ALPHABET.indexOf(text[place] ?? 'A') ^ (1 << (value % 6))) & 63] ?? '') +
        text.slice(place + 1)
      )
    case 'byte': {
      const changed = bytes()
      changed[Math.floor(at * changed.length)] = value
      return sealed(changed)
    }
    case 'cut':
      return text.slice(0, place)
    case 'behead':
      return text.slice(place)
    case 'prefix':
      return (PREFIXES[value % PREFIXES.length] ?? '') + text.slice(4)
    case 'splice':
      return text.slice(0, place) + other.slice(place)
    case 'segment': {
      // One of the parts of another sealed value.
      const [from = 0, to = 0] = SEGMENTS.slice(value % 5)
      const [ours, theirs] = [bytes(), Buffer.from(other.slice(4), 'base64url')]
      return sealed(Buffer.concat([ours.subarray(0, from), theirs.subarray(from, to), ours.subarray(to)]))
    }
    case 'append':
      return text + (['=', ' ', 'A', '\0', '\u0301', '.'][value % 6] ?? '')
    case 'twice':
      return text + text.slice(4)
    default:
      return text.slice(0, place) + String.fromCharCode(value) + text.slice(place + 1)
  }
}
