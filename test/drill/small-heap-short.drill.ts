// Hostile servers at a client in a process with a small heap: the process survives, and stays small.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Child } from '../interop/child.ts'

const SERVER = fileURLToPath(new URL('../hostile/server.mjs', import.meta.url))
const CLIENT = fileURLToPath(new URL('../hostile/small-client.mjs', import.meta.url))

let child: Child
let url = ''
beforeAll(async () => {
  child = new Child(process.execPath, [SERVER])
  const [, address = ''] = await child.printed.match(/listening on (\S+)/)
  url = address
})
afterAll(() => child.kill())

interface Attack {
  wire: 'http' | 'fetch' | 'stdio'
  /** Of a server over stdio. */
  mode?: string
  tool: string
  bytes?: number
  calls?: number
  options?: object
}

interface Outcome {
  /** Of each call. */
  outcomes: string[]
  /** What the same client got for its next call. */
  next: string
  ms: number
  /** The size of the process at its largest, in megabytes. */
  mb: number
}

async function attack({ wire, mode = '', tool, bytes = 0, calls = 1, options = {} }: Attack): Promise<Outcome> {
  const command = { command: process.execPath, args: [SERVER, '--stdio', mode] }
  const env = {
    PATH: process.env['PATH'],
    WIRE: wire,
    ADDRESS: wire === 'stdio' ? JSON.stringify(command) : url,
    TOOL: tool,
    ARGUMENTS: JSON.stringify({ bytes }),
    CALLS: String(calls),
    OPTIONS: JSON.stringify(options),
  }
  const { stdout } = await promisify(execFile)(process.execPath, ['--max-old-space-size=256', CLIENT], { env })
  return JSON.parse(stdout) as Outcome
}

describe('a response in chunks of one byte', () => {
  test.each<[Attack['wire'], string, number]>([
    ['http', 'tiny_chunks_of_a_body', 1_000_000],
    ['http', 'tiny_chunks_of_an_event', 1_000_000],
    ['fetch', 'tiny_chunks_of_a_body', 2_000_000],
    ['fetch', 'tiny_chunks_of_an_event', 2_000_000],
    ['stdio', 'tiny_chunks_of_a_line', 600_000],
  ])('costs about as much memory as in one piece: over %s, %s', { timeout: 120_000 }, async (wire, tool, bytes) => {
    const { outcomes, next, mb } = await attack({ wire, tool, bytes })
    expect(outcomes).toEqual([expect.stringMatching(/^a text of \d{6,}$/)])
    expect(next).toBe('pong')
    // The process alone takes 50 MB, and 65 MB with fetch.
    expect(mb).toBeLessThan(wire === 'stdio' ? 100 : 130)
  })
})

test.each<[Attack['wire'], string]>([
  ['http', 'stops_midway'],
  ['http', 'stops_midway_in_an_event'],
  ['fetch', 'stops_midway'],
])('many incomplete responses at once are bounded together: over %s, %s', async (wire, tool) => {
  const options = { timeoutMs: 3_000, maxBufferedBytes: 32_000_000 }
  const { outcomes, next, mb } = await attack({ wire, tool, calls: 20, options })
  expect(new Set(outcomes)).toEqual(new Set(['RESPONSE_TOO_LARGE', 'TIMEOUT']))
  expect(next).toBe('pong')
  expect(mb).toBeLessThan(250)
})

test.each(['asks_under_long_ids', 'asks_at_length'])(
  'questions of an older server that wait for a user take little together: %s',
  { timeout: 60_000 },
  async (tool) => {
    const { outcomes, next, mb } = await attack({ wire: 'stdio', mode: 'older', tool, calls: 2 })
    expect([outcomes.length, next]).toEqual([2, 'pong'])
    expect(mb).toBeLessThan(200)
  },
)
