// That what is left out of the matrix cannot be, and that nothing else is.
import { readFileSync } from 'node:fs'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONNECT } from './clients.ts'
import type { Servers } from './servers.ts'
import { servers, START_MS } from './servers.ts'
import type { Case, Reason, Row } from './table.ts'
import { CASES, casesOf, CLIENTS, reasonAgainst, REVISIONS, ROWS, SERVERS, titleOf, WIRES } from './table.ts'
import { User } from './user.ts'

/** The combinations that a reason leaves out. */
function leftOutFor(reason: Reason): [title: string, row: Row, given: Case][] {
  return ROWS.flatMap((row) =>
    CASES.filter((given) => reasonAgainst(row, given) === reason).map((given): [string, Row, Case] => [
      `${given.name}: ${titleOf(row)}`,
      row,
      given,
    ]),
  )
}

let running: Servers
beforeAll(async () => {
  running = await servers('HTTP')
}, START_MS)
afterAll(() => running.close())

test('every combination there could be is in the table, tried or with its reason', () => {
  const sides = Object.keys(SERVERS).length * Object.keys(CLIENTS).length
  expect(new Set(ROWS.map(titleOf)).size).toBe(sides * REVISIONS.length * WIRES.length)
})

test('of the latest revision, and of the one before, a pair does all or nothing', () => {
  const tried = ROWS.filter(({ revision }) => revision >= '2025-11-25').map((row) => casesOf(row).length)
  expect(new Set(tried)).toEqual(new Set([0, CASES.length]))
})

test.each(WIRES)('whoever meets a side of ours over %s is met in some revision', (wire) => {
  const met = ROWS.filter((row) => row.wire === wire && casesOf(row).length > 0)
  expect(new Set(met.map(({ server, client }) => `${server}-${client}`))).toEqual(
    new Set(['ours-ours', 'ours-v2', 'ours-v1', 'v2-ours', 'v1-ours']),
  )
})

test('only pairs with no part of ours are left out for that', () => {
  const pairs = leftOutFor('c').flatMap(([, { server, client }]) => [server, client])
  expect(pairs).not.toContain('ours')
})

describe('version 1 of the official SDK', () => {
  test('does not speak 2026-07-28', async () => {
    expect(SUPPORTED_PROTOCOL_VERSIONS).not.toContain('2026-07-28')
    await expect(CONNECT.ours(running.addressOf('v1'), '2026-07-28')).rejects.toThrow(/HTTP 400|Bad Request/)
  })

  test('has a client that proposes its latest revision, whatever it is told', async () => {
    const { url } = running.addressOf('ours') as { url: string }
    const transport = new HttpV1(new URL(url))
    // An option of version 2's.
    const options: object = { supportedProtocolVersions: ['2025-06-18'] }
    const client = new ClientV1({ name: 'told', version: '1.0.0' }, options)
    await client.connect(transport)
    expect(transport.protocolVersion).toBe('2025-11-25')
    await client.close()
  })
})

describe('without sessions, the official v2 server', () => {
  test('serves 2026-07-28 as it does with them', async () => {
    const client = await CONNECT.ours(running.addressOf('v2-stateless'), '2026-07-28')
    const [given] = CASES
    if (given === undefined) throw new Error('There are no cases.')
    expect(await client.call(new User(given), given.tool, given.args)).toEqual({ text: given.text, isError: false })
    await client.close()
  })

  test.each(leftOutFor('g'))('asks nobody anything, and says so: %s', async (_title, row, { tool, args, ...given }) => {
    const client = await CONNECT.ours(running.addressOf(row.server), row.revision)
    const user = new User({ tool, args, ...given })
    const { text, isError } = await client.call(user, tool, args)
    expect(isError).toBe(true)
    expect(text).toMatch(/Cannot request input .* per-request legacy serving cannot receive server-to-client requests/)
    expect(user.shown).toEqual([])
    await client.close()
  })
})

describe('a revision that has no such question', () => {
  const ours = [...leftOutFor('a'), ...leftOutFor('b')].filter(
    ([, { server, wire }]) => server === 'ours' && wire === 'HTTP',
  )

  test.each(ours)('cannot be asked it by our server: %s', async (_title, row, given) => {
    const client = await CONNECT[row.client](running.addressOf('ours'), row.revision)
    const user = new User(given)
    const { text, isError } = await client.call(user, given.tool, given.args)
    expect(isError).toBe(true)
    expect(text).toMatch(/the app that sent it cannot ask its user/)
    expect(user.shown).toEqual([])
    await client.close()
  })
})

test("our server's handlers look at no revision", () => {
  const source = readFileSync(new URL('./handlers.mjs', import.meta.url), 'utf8')
  expect(source).toContain('app.tool(')
  expect(source).not.toMatch(/revision|20\d\d-\d\d/i)
})
