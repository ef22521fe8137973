// The matrix as data: who talks to whom, in which revision, over which wire, about what; and why some of it cannot be.

export const WIRES = ['HTTP', 'stdio'] as const
export const REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

export const SERVERS = {
  ours: 'our server',
  v2: 'official v2 server',
  'v2-stateless': 'official v2 server, no sessions',
  v1: 'official v1 server',
} as const

export const CLIENTS = {
  ours: 'our client',
  v2: 'official v2 client',
  v1: 'official v1 client',
} as const

export type Wire = (typeof WIRES)[number]
export type Revision = (typeof REVISIONS)[number]
export type ServerName = keyof typeof SERVERS
export type ClientName = keyof typeof CLIENTS

/** What a client shows of a question, whoever it is. */
export type Shown =
  | { readonly mode: 'form'; readonly message: string; readonly schema: unknown }
  | { readonly mode: 'url'; readonly message: string; readonly url: string }
  | { readonly mode: 'sample'; readonly messages: unknown; readonly maxTokens: number }
  | { readonly mode: 'roots' }

export interface Case extends Asking {
  /** A column of the table. */
  readonly name: string
  readonly does: 'accept' | 'decline' | 'cancel' | 'abort'
  /** The same without a question to the user, for the revision that has none. */
  readonly instead?: Asking
}

export interface Asking {
  readonly tool: string
  readonly args: Readonly<Record<string, string>>
  /** What is asked, in rounds: those of one round are answered once all of them have been shown. */
  readonly rounds: readonly (readonly Shown[])[]
  /** What the tool says in the end; after an aborted call, to the next one that is accepted. */
  readonly text: string
}

/** A pair that talks in one revision over one wire. */
export interface Row {
  readonly wire: Wire
  readonly server: ServerName
  readonly client: ClientName
  readonly revision: Revision
}

/** The address is the server's own, of this minute. */
export const PAGE = 'http://127.0.0.1/?token='

const object = (properties: object): object => ({ type: 'object', properties, required: Object.keys(properties) })
const form = (message: string, properties: object): Shown => ({ mode: 'form', message, schema: object(properties) })
const sample = (text: string): Shown => ({
  mode: 'sample',
  messages: [{ role: 'user', content: { type: 'text', text } }],
  maxTokens: 50,
})
const sure = (message: string): Shown => form(message, { confirm: { type: 'boolean' } })
const who = (message: string): Shown => form(message, { name: { type: 'string', minLength: 2 } })

const deploy = { tool: 'deploy', args: { env: 'prod' }, rounds: [[sure('Deploy to prod?')]] }
const summarize = {
  tool: 'summarize',
  args: { text: 'A long story.' },
  rounds: [[sample('Sum up: A long story.')]],
  text: 'model-1: It ended well.',
}
const accept = { does: 'accept' } as const

export const CASES: readonly Case[] = [
  { name: 'form', ...deploy, ...accept, text: 'Deployed to prod: true' },
  {
    ...accept,
    name: 'URL',
    tool: 'sign_in',
    args: {},
    rounds: [[{ mode: 'url', message: 'Please sign in.', url: PAGE }]],
    text: 'Signed in.',
  },
  { ...accept, name: 'sample', ...summarize },
  {
    ...accept,
    name: 'roots',
    tool: 'workspace',
    args: {},
    rounds: [[{ mode: 'roots' }]],
    text: 'work file:///home/ada/work, notes file:///home/ada/notes',
  },
  {
    ...accept,
    name: 'several rounds',
    tool: 'register',
    args: {},
    rounds: [
      [who('Your name?')],
      [form('How old are you, Ada?', { years: { type: 'integer', minimum: 0, maximum: 150 } })],
      [sure('Register Ada, 36?')],
    ],
    text: 'Ada, 36: true',
    instead: {
      tool: 'discuss',
      args: {},
      rounds: [[sample('What is new?')], [sample('Is that good: A comet?')]],
      text: 'A comet? It depends.',
    },
  },
  {
    ...accept,
    name: 'several at once',
    tool: 'trip',
    args: {},
    rounds: [
      [
        who('Who travels?'),
        form('Where to?', { to: { type: 'string', enum: ['sea', 'hills'] } }),
        sample('What to pack?'),
        { mode: 'roots' },
      ],
    ],
    text: 'Grace to the hills. Take a coat. 2 roots.',
    instead: {
      tool: 'pack',
      args: {},
      rounds: [[sample('What to pack?'), { mode: 'roots' }]],
      text: 'Take a coat. 2 roots.',
    },
  },
  { name: 'decline', ...deploy, does: 'decline', text: 'The user said decline.' },
  { name: 'cancel', ...deploy, does: 'cancel', text: 'The user said cancel.' },
  // Of the whole call, by whoever made it: there is no result.
  { name: 'abort', ...deploy, does: 'abort', text: 'Deployed to prod: true', instead: summarize },
]

/** Why a combination is not in the matrix. A test holds each against what the sides really do. */
export const REASONS = {
  a: '2025-06-18 has no page to visit.',
  b: '2025-03-26 and 2024-11-05 have no questions to the user at all, forms or pages.',
  c: 'Neither side is ours.',
  d: 'Version 1 of the official SDK does not speak 2026-07-28.',
  e: 'The official v1 client proposes its latest revision, 2025-11-25, and cannot be told otherwise.',
  f: 'That mode is one of the older revisions over HTTP: here it is like the other.',
  g: 'Without sessions the official v2 server asks nobody anything, and says so: an answer would not find its call.',
} as const

export type Reason = keyof typeof REASONS

export const ROWS: readonly Row[] = WIRES.flatMap((wire) =>
  keysOf(SERVERS).flatMap((server) =>
    keysOf(CLIENTS).flatMap((client) => REVISIONS.map((revision) => ({ wire, server, client, revision }))),
  ),
)

/** Why no such call can be made, or nothing if it can. */
export function reasonAgainst(row: Row, given: Case): Reason | undefined {
  const { wire, server, client, revision } = row
  const isModern = revision === '2026-07-28'
  if (server !== 'ours' && client !== 'ours') return 'c'
  if (isModern && (server === 'v1' || client === 'v1')) return 'd'
  if (client === 'v1' && revision !== '2025-11-25') return 'e'
  if (server === 'v2-stateless') return isModern || wire === 'stdio' ? 'f' : 'g'
  return reasonIn(revision, askedIn(revision, given))
}

/** What of a row can be. */
export function casesOf(row: Row): readonly Case[] {
  const cases = CASES.filter((given) => reasonAgainst(row, given) === undefined)
  return cases.map((given) => asCarried(row, askedIn(row.revision, given)))
}

/** Our client carries the calls of our server in older revisions from one question to the next (SEP-1685). */
function asCarried({ server, client, revision }: Row, given: Case): Case {
  if (server !== 'ours' || client !== 'ours' || revision === '2026-07-28') return given
  return { ...given, rounds: given.rounds.flat().map((question) => [question]) }
}

function askedIn(revision: Revision, given: Case): Case {
  return given.instead === undefined || reasonIn(revision, given) === undefined ? given : { ...given, ...given.instead }
}

function reasonIn(revision: Revision, { rounds }: Case): Reason | undefined {
  const modes = new Set(rounds.flat().map(({ mode }) => mode))
  if (revision === '2025-06-18' && modes.has('url')) return 'a'
  const hasQuestions = revision !== '2025-03-26' && revision !== '2024-11-05'
  return !hasQuestions && (modes.has('url') || modes.has('form')) ? 'b' : undefined
}

/** Whether it is the revision that the two come to when nobody tells them which. */
export function isOwnChoice({ server, client, revision }: Row): boolean {
  return revision === (server === 'v1' || client === 'v1' ? '2025-11-25' : '2026-07-28')
}

export function titleOf({ server, client, revision, wire }: Row): string {
  return `${SERVERS[server]} and ${CLIENTS[client]} in ${revision} over ${wire}`
}

function keysOf<K extends string>(record: Readonly<Record<K, string>>): K[] {
  return Object.keys(record) as K[]
}
