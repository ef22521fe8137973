// Sealed values of every purpose, forged, spliced, cut, replayed, or used by somebody else, for something else, at another time.
import type { Random } from '../harness/random.ts'
import type { Watch } from '../harness/target.ts'
import { clipped, Finding, target } from '../harness/target.ts'
import type { Caller, Sealed } from './seal-bank.ts'
import { Bank, PURPOSES, REQUESTS } from './seal-bank.ts'

const PRINCIPALS = [null, 'ada', 'bob', 'ada ', 'null', 'undefined']

/** Who had it sealed, by which of the apps, in which round. */
type Origin = Caller & { app: number; rounds: number }
/** Who presents it to which app, after how long, and what with once more. */
type Use = Caller & { app: number; sameSession: boolean; afterMs: number; again: string }
/** A change of the sealed text; `at` is a place in it, from 0 to 1. */
type Edit = { op: string; at: number; value: number }
/** Each variant is a list of changes; `second` is another sealed value, to take parts from. */
type Input = { origin: Origin; second: Origin; variants: Edit[][]; use: Use }

const PREFIXES = ['rs1.', 'sr1.', 'se1.', 'ev1.', 'cu1.', 'rs2.', 'RS1.', '']
/** Of what is sealed, in bytes: key id, salt, nonce, tag, ciphertext. */
const SEGMENTS = [0, 8, 24, 36, 52, 1_000_000]
const TIMES = [0, 0, 0, 30_000, 599_000, 700_000, 80_000_000, 90_000_000, 1e12, -30_000, -120_000, -1e12]
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
        if (![origin, second, use].every(isInput)) throw new Error('Made too small to be an input.')
        const minted = await bankAt(banks, origin.app).mint(origin, origin.rounds)
        const spare = await bankAt(banks, second.app).mint(second, second.rounds)
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

/** An input that was made smaller may be none any more. */
function isInput({ purpose, principal }: Caller): boolean {
  return PURPOSES.includes(purpose) && principal !== ''
}

interface Presented {
  readonly origin: Origin
  readonly second: Origin
  readonly use: Use
  readonly minted: Sealed
  readonly spare: Sealed
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
    const said = await bank.present(use, { text, session, askId: minted.askId }, again === 'other')
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

function bankAt(banks: readonly Bank[], index: number): Bank {
  return banks[index % banks.length] as Bank
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
  if (random.chance(0.4)) return use
  return random.oneOf<Use>([
    () => ({ ...use, purpose: random.pick(PURPOSES) }),
    () => ({ ...use, app: random.int(4) }),
    () => ({ ...use, principal: random.pick(PRINCIPALS) }),
    () => ({ ...use, request: random.int(REQUESTS.length) }),
    () => ({ ...use, sameSession: false }),
    () => ({ ...use, afterMs: random.pick(TIMES) }),
    () => ({ ...use, again: random.pick(['same', 'other']) }),
  ])
}

function someVariants(random: Random): Edit[][] {
  const someEdit = (): Edit => ({ op: random.pick(Object.keys(EDITS)), at: random.next(), value: random.int(256) })
  return random.list(1, 10, () => random.list(0, 2, someEdit))
}

/** `place` is one in the text, `other` another sealed text. */
type EditText = (text: string, place: number, value: number, other: string) => string

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

const EDITS: Readonly<Record<string, EditText>> = {
  flip: (text, place, value) => {
    const character = ALPHABET[(ALPHABET.indexOf(text[place] ?? 'A') ^ (1 << (value % 6))) & 63] ?? ''
    return text.slice(0, place) + character + text.slice(place + 1)
  },
  byte: (text, place, value) => {
    const bytes = bytesOf(text)
    bytes[place % bytes.length] = value
    return text.slice(0, 4) + bytes.toString('base64url')
  },
  // One of the parts of another sealed value.
  segment: (text, _place, value, other) => {
    const [from = 0, to = 0] = SEGMENTS.slice(value % 5)
    const [ours, theirs] = [bytesOf(text), bytesOf(other)]
    const bytes = Buffer.concat([ours.subarray(0, from), theirs.subarray(from, to), ours.subarray(to)])
    return text.slice(0, 4) + bytes.toString('base64url')
  },
  cut: (text, place) => text.slice(0, place),
  behead: (text, place) => text.slice(place),
  splice: (text, place, _value, other) => text.slice(0, place) + other.slice(place),
  prefix: (text, _place, value) => (PREFIXES[value % PREFIXES.length] ?? '') + text.slice(4),
  append: (text, _place, value) => text + (['=', ' ', 'A', '\0', '\u0301', '.'][value % 6] ?? ''),
  twice: (text) => text + text.slice(4),
  character: (text, place, value) => text.slice(0, place) + String.fromCharCode(value) + text.slice(place + 1),
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text.slice(4), 'base64url')
}

function edited(text: string, { op, at, value }: Edit, other: string): string {
  return EDITS[op]?.(text, Math.floor(at * text.length), value, other) ?? text
}
