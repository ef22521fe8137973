// A new version of a tool is rolled out: flows that recorded steps under the old one find the instance that still has it.
import { Client as OfficialClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { ClientError, ClientOptions, PendingCall } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import type { Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { afterEach, expect, test } from 'vitest'
import { textOf } from '../client/wires.ts'
import { Proxy } from './proxy.ts'

const KEYS = ['a secret of the tests of versions, long enough']

const DRAFTS = ['2026-06-XX', '2026-02-03-draft'] as const

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** Instances of these versions behind a proxy that takes turns. */
class Fleet {
  /** The version of each step that ran. */
  readonly steps: string[] = []
  /** Each time a question reached the user. */
  asked = 0
  #proxy = new Proxy([])
  url = ''

  static async open(versions: readonly string[]): Promise<Fleet> {
    const fleet = new Fleet()
    await fleet.deploy(versions)
    fleet.url = await fleet.#proxy.listen()
    closing.push(() => fleet.#proxy.close())
    return fleet
  }

  /** Replaces the instances. */
  async deploy(versions: readonly string[]): Promise<void> {
    const serving = await Promise.all(
      versions.map((version) => serve(this.#app(version), { port: 0, handleSignals: false })),
    )
    closing.push(...serving.map((each) => () => each.close()))
    this.#proxy.ports.splice(0, Infinity, ...serving.map(portOf))
  }

  #app(version: string): Rally {
    const revisions = [...DRAFTS]
    const app = rally({ name: 'fleet', version: '1', keys: KEYS, revisions, logger: { warn() {}, error() {} } })
    if (version === 'without the tool') return app.tool('another', {}, () => '')
    return app.tool('order', { version }, async (_args, io) => {
      const first = await io.step('begin', () => this.#step(`begin ${version}`))
      const isPaid = await io.confirm('pay', 'Pay?')
      const last = await io.step('end', () => this.#step(`end ${version}`))
      const isGift = await io.confirm('gift', 'As a gift?')
      return `${first}, ${last}, ${isPaid}, ${isGift}`
    })
  }

  #step(name: string): string {
    this.steps.push(name)
    return name
  }

  get yes(): ClientOptions {
    return {
      onElicit: () => {
        this.asked += 1
        return { action: 'accept', content: { confirm: true } }
      },
    }
  }
}

const portOf = ({ url }: Serving): number => Number(new URL(url).port)

/** The state of a call that one old instance has begun. */
async function begun(fleet: Fleet, revision = '2026-07-28'): Promise<PendingCall> {
  const client = await connect(fleet.url, { can: ['elicitation.form'], revision })
  closing.push(() => client.close())
  for await (const round of client.rounds({ tool: 'order' })) if (round.kind === 'asks') return round.pending
  throw new Error('It asked nothing.')
}

const cases = ['2026-07-28', ...DRAFTS].flatMap((revision) =>
  ['2', 'without the tool'].map((other) => ({ revision, other })),
)

test.each(cases)(
  'our client goes on at the one instance that is left, beside two $other, in $revision',
  async ({ revision, other }) => {
    const fleet = await Fleet.open(['1'])
    const pending = await Promise.all(Array.from({ length: 4 }, () => begun(fleet, revision)))
    await fleet.deploy([other, other, '1'])
    const client = await connect(fleet.url, { ...fleet.yes, revision })
    closing.push(() => client.close())
    const results = await Promise.all(pending.map((each) => client.resume(each)))
    expect(results.map((result) => textOf(result as Parameters<typeof textOf>[0]))).toEqual(
      Array.from({ length: 4 }, () => 'begin 1, end 1, true, true'),
    )
    expect(fleet.asked).toBe(8)
    expect(fleet.steps.toSorted()).toEqual([...Array<string>(4).fill('begin 1'), ...Array<string>(4).fill('end 1')])
  },
)

test('so does the official client', async () => {
  const fleet = await Fleet.open(['1'])
  const options = {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: 'auto' as const },
  }
  const client = new OfficialClient({ name: 'official', version: '1' }, options)
  client.setRequestHandler('elicitation/create', async () => {
    fleet.asked += 1
    if (fleet.asked === 1) await fleet.deploy(['2', '1'])
    return { action: 'accept', content: { confirm: true } }
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(fleet.url)))
  closing.push(() => client.close())
  expect(await client.callTool({ name: 'order', arguments: {} })).toMatchObject({
    content: [{ text: 'begin 1, end 1, true, true' }],
  })
  expect(fleet.asked).toBe(2)
  expect(fleet.steps).toEqual(['begin 1', 'end 1'])
})

test('where no instance has the version any more the call fails, and goes on when one is back', async () => {
  const fleet = await Fleet.open(['1'])
  const pending = await begun(fleet)
  await fleet.deploy(['2'])
  const client = await connect(fleet.url, fleet.yes)
  closing.push(() => client.close())
  const error = await client.resume(pending, undefined, { timeoutMs: 400 }).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'TIMEOUT', pending: { requestState: expect.any(String) } })
  const { pending: left } = error as ClientError
  if (left === undefined) throw new Error('Nothing is pending.')
  expect(left.requestState).not.toBe(pending.requestState)
  expect(fleet.steps).toEqual(['begin 1'])
  await fleet.deploy(['1'])
  const result = await client.resume(left)
  expect(textOf(result as Parameters<typeof textOf>[0])).toBe('begin 1, end 1, true, true')
  // The first question was answered before the call failed.
  expect(fleet.asked).toBe(2)
})
