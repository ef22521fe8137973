import type { Rally, RallyOptions } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { META_LOG_LEVEL } from '../../src/protocol/revisions/2026-07-28.ts'
import { keyring, prefixes } from '../../src/seal/keyring.ts'
import type { Purpose } from '../../src/seal/keyring.ts'
import { tokens } from '../../src/seal/token.ts'
import { accept, askedIn, call, callerNamed, headersOf } from './messages.ts'

const KEY = 'the secret of the bank, long enough for it'
const OTHER_KEY = 'the secret of another, long enough for it'
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const ARGS = { to: 'bob', amount: 5, notes: { tags: ['a', 'b'], urgent: true } }
const ANSWERS = { sure: accept({ confirm: true }) }

/** The one answer to every state that does not open, to the byte. */
const REFUSED = '{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"Invalid or expired requestState"}}'

/** A running app with a tool that asks, and what it has done and logged. */
class Bank {
  readonly app: Rally
  readonly ran: string[] = []
  readonly logged: string[] = []
  #serving: Serving | undefined

  constructor(options: Partial<RallyOptions> = {}) {
    const log = (message: string, details?: unknown): void => void this.logged.push(message + JSON.stringify(details))
    this.app = rally({ name: 'bank', version: '1', keys: [KEY], logger: { warn: log, error: log }, ...options })
    const input = z.looseObject({ to: z.string(), amount: z.number() })
    for (const tool of ['transfer', 'withdraw']) {
      this.app.tool(tool, { input }, async ({ amount }, io) => {
        this.ran.push(tool)
        await io.step('reserve', () => ({ hold: 'a secret of the journal' }))
        const sure = await io.confirm('sure', 'Are you sure?')
        return sure ? `${tool} ${amount}` : 'Nothing'
      })
    }
  }

  /** A state that was minted by this app, for this principal. */
  async state(principal?: string): Promise<string> {
    const reply = await this.app.dispatch(call('transfer', ARGS), { caller: callerNamed(principal) })
    this.ran.length = 0
    return askedIn(JSON.parse(reply?.text ?? '{}')).state
  }

  /** The text of the response to a second round with this state. */
  async retry(state: unknown, { tool = 'transfer', args = ARGS, principal }: Retry = {}): Promise<string> {
    const reply = await this.app.dispatch(retryOf(state, tool, args), { caller: callerNamed(principal) })
    return reply?.text ?? ''
  }

  /** The same over HTTP, with its status. */
  async retryOverHttp(state: unknown, { tool = 'transfer', args = ARGS, principal }: Retry = {}): Promise<string> {
    this.#serving ??= await serve(this.app, {
      // A test sends a thousand at once, and a busy machine may take its time.
      maxLagMs: 60_000,
      port: 0,
      authenticate: (request) => ({ principal: request.header('x-user') ?? 'nobody' }),
    })
    const message = retryOf(state, tool, args)
    const headers = { ...headersOf(message), ...(principal !== undefined && { 'X-User': principal }) }
    const response = await fetch(this.#serving.url, { method: 'POST', headers, body: JSON.stringify(message) })
    return `${response.status} ${response.headers.get('content-type')} ${await response.text()}`
  }

  async close(): Promise<void> {
    await this.#serving?.close()
  }
}

interface Retry {
  tool?: string
  args?: object
  principal?: string
}

function retryOf(requestState: unknown, tool: string, args: object): object {
  // Notifications are wanted, so that one would be seen if a handler ran.
  const meta = { [META_LOG_LEVEL]: 'debug', progressToken: 1 }
  return { ...call(tool, args, { requestState, inputResponses: ANSWERS }, meta), id: 'x' }
}

let bank: Bank

beforeEach(() => {
  bank = new Bank()
})
afterEach(async () => {
  await bank.close()
  vi.useRealTimers()
})

describe('a state that was not changed', () => {
  test('goes on for the caller it was minted for', async () => {
    const state = await bank.state('alice')
    expect(await bank.retry(state, { principal: 'alice' })).toContain('transfer 5')
    expect(bank.ran).toEqual(['transfer'])
  })

  test('goes on when it is sent twice, and does it again: at least once is what is promised', async () => {
    const state = await bank.state()
    const [first, second] = [await bank.retry(state), await bank.retry(state)]
    expect(first).toContain('transfer 5')
    expect(second).toBe(first)
    expect(bank.ran).toEqual(['transfer', 'transfer'])
  })

  test('goes on over HTTP for the principal it was minted for', async () => {
    const state = await bank.state('alice')
    expect(await bank.retryOverHttp(state, { principal: 'alice' })).toContain('transfer 5')
  })

  test('goes on whatever the order in which the arguments come', async () => {
    const args = { notes: { urgent: true, tags: ['a', 'b'] }, amount: 5.0, to: 'bob' }
    expect(await bank.retry(await bank.state(), { args })).toContain('transfer 5')
  })
})

describe('a changed state', () => {
  test('is refused with any of its bits flipped, and with any character replaced by one of no alphabet', async () => {
    const state = await bank.state()
    const answers = new Set<string>()
    for (const [at, character] of Array.from(state).entries()) {
      const value = ALPHABET.indexOf(character)
      for (const other of [...[1, 2, 4, 8, 16, 32].map((bit) => ALPHABET[(value ^ bit) & 63] ?? ''), '+', '\0']) {
        answers.add(await bank.retry(replaced(state, at, other)))
      }
    }
    expect([...answers]).toEqual([REFUSED])
    expect(bank.ran).toEqual([])
  })

  test('is refused at every shorter length', async () => {
    const state = await bank.state()
    const answers = new Set<string>()
    for (let length = 0; length < state.length; length += 1) answers.add(await bank.retry(state.slice(0, length)))
    for (let start = 1; start < state.length; start += 1) answers.add(await bank.retry(state.slice(start)))
    expect([...answers]).toEqual([REFUSED])
    expect(bank.ran).toEqual([])
  })

  test('is refused over HTTP with status 200 and the same bytes, whichever character was changed', async () => {
    const state = await bank.state('alice')
    const changes = Array.from(state, (character, at) => replaced(state, at, character === 'A' ? 'B' : 'A'))
    const answers = await Promise.all(changes.map((changed) => bank.retryOverHttp(changed, { principal: 'alice' })))
    expect([...new Set(answers)]).toEqual([`200 application/json ${REFUSED}`])
    expect(bank.ran).toEqual([])
  })
})

describe('another text for the same state', () => {
  const other: readonly [string, (state: string) => string][] = [
    ['padding', (state) => `${state}=`],
    ['more padding', (state) => `${state}==`],
    ['the padding that would be right', (state) => state + '='.repeat((4 - ((state.length - 4) % 4)) % 4 || 4)],
    ['a space after it', (state) => `${state} `],
    ['a space before it', (state) => ` ${state}`],
    ['a newline after it', (state) => `${state}\n`],
    ['a space inside', (state) => `${state.slice(0, 60)} ${state.slice(60)}`],
    ['a newline inside', (state) => `${state.slice(0, 76)}\r\n${state.slice(76)}`],
    ['a NUL after it', (state) => `${state}\0`],
    ['one more character', (state) => `${state}A`],
    ['two more characters', (state) => `${state}AA`],
    ['three more characters', (state) => `${state}AAA`],
    ['a whole group more', (state) => `${state}AAAA`],
    ['itself once more', (state) => state + state],
    ['itself once more without a prefix', (state) => state + state.slice(4)],
    ['no prefix', (state) => state.slice(4)],
    ['its prefix twice', (state) => `rs1.${state}`],
    ['another case of its prefix', (state) => `RS1.${state.slice(4)}`],
    ['a later version', (state) => `rs2.${state.slice(4)}`],
    ['the standard alphabet', (state) => `rs1.${Buffer.from(state.slice(4), 'base64url').toString('base64')}`],
    ['hexadecimal', (state) => `rs1.${Buffer.from(state.slice(4), 'base64url').toString('hex')}`],
    ['characters of full width', (state) => state.replaceAll(/[A-Z]/g, (letter) => wide(letter))],
    ['a combining mark', (state) => `${state}\u0301`],
    ['an escape of a URL', (state) => `${state.slice(0, -1)}%${state.charCodeAt(state.length - 1).toString(16)}`],
    ['quotes around it', (state) => JSON.stringify(state)],
    ['more than may be looked at', (state) => state.padEnd(70_000, 'A')],
    ...Object.entries(prefixes)
      .filter(([purpose]) => purpose !== 'requestState')
      .map(([purpose, prefix]): [string, (state: string) => string] => [
        `the prefix of a ${purpose}`,
        (state) => prefix + state.slice(4),
      ]),
  ]

  test.each(other)('is refused: %s', async (_name, change) => {
    const state = await bank.state()
    expect(change(state)).not.toBe(state)
    expect(await bank.retry(change(state))).toBe(REFUSED)
    expect(bank.ran).toEqual([])
  })

  test('is refused with any bits after the last byte', async () => {
    // The clock stands still, so that the three states differ in length by the name alone.
    vi.useFakeTimers({ toFake: ['Date'] })
    const lengths: number[] = []
    for (const name of ['bank', 'bank2', 'bank33']) {
      const longer = new Bank({ name })
      const state = await longer.state()
      const spare = [0, 0, 4, 2][(state.length - 4) % 4] ?? 0
      const last = ALPHABET.indexOf(state.at(-1) ?? '')
      lengths.push(spare)
      for (let bits = 1; bits < 1 << spare; bits += 1) {
        const loose = state.slice(0, -1) + (ALPHABET[last | bits] ?? '')
        expect(Buffer.from(loose, 'base64url')).toEqual(Buffer.from(state, 'base64url'))
        expect(await longer.retry(loose)).toBe(REFUSED)
      }
      expect(longer.ran).toEqual([])
    }
    expect(new Set(lengths)).toEqual(new Set([0, 2, 4]))
  })
})

describe('a state of somebody else', () => {
  test('is refused when it was made under another key', async () => {
    const state = await new Bank({ keys: [OTHER_KEY] }).state()
    expect(await bank.retry(state)).toBe(REFUSED)
    expect(bank.ran).toEqual([])
  })

  test('is refused when it was made under another key and claims to be of this one', async () => {
    const [ours, theirs] = [await bank.state(), await new Bank({ keys: [OTHER_KEY] }).state()]
    const bytes = Buffer.from(theirs.slice(4), 'base64url')
    Buffer.from(ours.slice(4), 'base64url').copy(bytes, 0, 0, 8)
    expect(await bank.retry(`rs1.${bytes.toString('base64url')}`)).toBe(REFUSED)
    expect(bank.ran).toEqual([])
  })

  test('is refused when its key was dropped, and opens while it is still in the ring', async () => {
    const state = await bank.state()
    expect(await new Bank({ keys: [OTHER_KEY, KEY] }).retry(state)).toContain('transfer 5')
    expect(await new Bank({ keys: [OTHER_KEY] }).retry(state)).toBe(REFUSED)
  })

  test('is refused when it was sealed for another purpose, under the same key', async () => {
    const ring = keyring([KEY])
    for (const purpose of Object.keys(prefixes) as Purpose[]) {
      const token = tokens(ring, purpose).seal('[1]\n[]')
      expect(await bank.retry(token)).toBe(REFUSED)
      expect(await bank.retry(`rs1.${token.slice(4)}`)).toBe(REFUSED)
    }
    expect(bank.ran).toEqual([])
  })

  test.each([
    { name: 'another name', options: { name: 'bank-2' } },
    { name: 'another audience', options: { audience: 'https://bank.example.com' } },
  ])('is refused by an app with $name, under the same key', async ({ options }) => {
    const other = new Bank(options)
    expect(await other.retry(await bank.state())).toBe(REFUSED)
    expect(await bank.retry(await other.state())).toBe(REFUSED)
    expect([...bank.ran, ...other.ran]).toEqual([])
  })

  const principals = [undefined, 'alice', 'Alice', 'alice ', 'bob', 'undefined', 'null', ' ']
  test.each(principals)('opens for the principal %j and for no other', async (principal) => {
    const state = await bank.state(principal)
    for (const other of principals) {
      const answer = await bank.retry(state, other === undefined ? {} : { principal: other })
      if (other === principal) expect(answer).toContain('transfer 5')
      else expect(answer).toBe(REFUSED)
    }
    expect(bank.ran).toEqual(['transfer'])
  })

  test('is refused over HTTP to another user', async () => {
    const state = await bank.state('alice')
    expect(await bank.retryOverHttp(state, { principal: 'bob' })).toBe(`200 application/json ${REFUSED}`)
    expect(bank.ran).toEqual([])
  })
})

describe('a state of another request', () => {
  test('is refused by another tool', async () => {
    expect(await bank.retry(await bank.state(), { tool: 'withdraw' })).toBe(REFUSED)
    expect(bank.ran).toEqual([])
  })

  test.each([
    { change: 'another value', args: { ...ARGS, amount: 6 } },
    { change: 'another type', args: { ...ARGS, to: ['bob'] } },
    { change: 'the text of a number', args: { ...ARGS, amount: '5' } },
    { change: 'one argument more', args: { ...ARGS, more: null } },
    { change: 'one argument less', args: { to: 'bob', amount: 5 } },
    { change: 'another value inside', args: { ...ARGS, notes: { ...ARGS.notes, urgent: false } } },
    { change: 'another order in a list', args: { ...ARGS, notes: { ...ARGS.notes, tags: ['b', 'a'] } } },
    { change: 'another case of a name', args: { To: 'bob', amount: 5, notes: ARGS.notes } },
    { change: 'no arguments', args: {} },
    { change: 'arguments that the tool refuses', args: { to: 1 } },
  ])('is refused with $change', async ({ args }) => {
    expect(await bank.retry(await bank.state(), { args })).toBe(REFUSED)
    expect(bank.ran).toEqual([])
  })

  test('is refused with a key of the arguments that only looks like the prototype', async () => {
    const args = JSON.parse('{"to":"bob","amount":5,"notes":{"tags":["a","b"],"urgent":true},"__proto__":{}}') as object
    expect(await bank.retry(await bank.state(), { args })).toBe(REFUSED)
  })
})

describe('a state out of its time', () => {
  const start = Date.UTC(2026, 6, 28)
  const minute = 60_000

  /** An app whose clock a test sets, and a state that it minted when the clock said `start`. */
  async function timed(options: Partial<RallyOptions> = {}): Promise<{ timedBank: Bank; state: string }> {
    vi.useFakeTimers({ toFake: ['Date'], now: start })
    const timedBank = new Bank(options)
    return { timedBank, state: await timedBank.state() }
  }

  test.each([
    { when: 'at the end of its ten minutes', after: 10 * minute, opens: true },
    { when: 'within the minute that clocks may differ', after: 11 * minute, opens: true },
    { when: 'after that', after: 11 * minute + 1, opens: false },
    { when: 'years later', after: 1e12, opens: false },
    { when: 'a minute before it was minted, by a clock that is slow', after: -minute, opens: true },
    { when: 'before that', after: -minute - 1, opens: false },
    { when: 'years before', after: -1e12, opens: false },
  ])('$when: opens is $opens', async ({ after, opens }) => {
    const { timedBank, state } = await timed()
    vi.setSystemTime(start + after)
    const answer = await timedBank.retry(state)
    if (opens) expect(answer).toContain('transfer 5')
    else expect(answer).toBe(REFUSED)
    expect(timedBank.ran).toEqual(opens ? ['transfer'] : [])
  })

  test('is refused past the ttl that the app was given', async () => {
    const { timedBank, state } = await timed({ ttl: 5 })
    vi.setSystemTime(start + 5_000 + minute + 1)
    expect(await timedBank.retry(state)).toBe(REFUSED)
  })

  test('is refused past the age that a whole flow may have', async () => {
    const { timedBank, state } = await timed({ maxAge: 30 })
    vi.setSystemTime(start + 30_000 + minute + 1)
    expect(await timedBank.retry(state)).toBe(REFUSED)
  })
})

describe('what is no state at all', () => {
  const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) as unknown
  test.each([
    '',
    ' ',
    '.',
    'rs1',
    'rs1.',
    'rs1..',
    'rs1.AAAA',
    'null',
    'undefined',
    '{}',
    '\0',
    '\ud800',
    '\u{1f600}',
    '\u00e9'.repeat(40_000),
    'A'.repeat(3_000_000),
    `rs1.${'A'.repeat(87_000)}`,
    `rs1.${'A'.repeat(60_000)}`,
    0,
    1,
    -1.5,
    1e300,
    true,
    false,
    [],
    [[]],
    {},
    { requestState: 'rs1.' },
    { toString: 'rs1.', length: 4 },
    null,
    deep,
  ])('is refused like any other (case %#)', async (garbage) => {
    expect(await bank.retry(garbage)).toBe(REFUSED)
    expect(bank.ran).toEqual([])
  })

  test('is refused when a state stands inside a list or an object', async () => {
    const state = await bank.state()
    for (const wrapped of [[state], { state }, Array.from(state)]) expect(await bank.retry(wrapped)).toBe(REFUSED)
    expect(bank.ran).toEqual([])
  })

  test('is refused also by a tool that never asks', async () => {
    bank.app.tool('plain', {}, () => 'ran')
    expect(await bank.retry('rs1.AAAA', { tool: 'plain', args: {} })).toBe(REFUSED)
  })

  test('is refused before the arguments are looked at', async () => {
    expect(await bank.retry('rs1.AAAA', { args: {} })).toBe(REFUSED)
  })
})

test('the log learns why, and nothing of the token or of what is in it', async () => {
  const state = await bank.state('alice')
  await bank.retry(state, { principal: 'bob' })
  await bank.retry(`${state}A`, { principal: 'alice' })
  await bank.retry('garbage of the client')
  expect(bank.logged).toHaveLength(3)
  expect(bank.logged[0]).toMatch(/^A requestState was refused\..*another principal/)
  for (const line of bank.logged) {
    expect(line).not.toMatch(/secret|alice|bob|garbage/)
    expect(line).not.toContain(state.slice(4, 30))
  }
})

function replaced(state: string, at: number, character: string): string {
  return state.slice(0, at) + character + state.slice(at + 1)
}

function wide(letter: string): string {
  return String.fromCharCode(letter.charCodeAt(0) + 0xfee0)
}
