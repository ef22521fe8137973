// Instances of a fleet, each a process: the one that asked is killed, another takes the answer up, and a third tells the end.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Server, Socket } from 'node:net'
import { connect as connectTcp, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client, ClientOptions, FormQuestion } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Process } from '../drain/process.ts'
import { KEYS } from './app.mjs'
import { accepted, answerTo, fetchSegment, readSegment, openCarrying, stateOf } from './carried.ts'
import { connectV1 } from './peers.ts'
import type { Ask, RawSession, Wired } from './raw.ts'
import { textOf } from './raw.ts'

interface Said {
  port?: number
  pid: number
  effect?: string
  key?: string
}

const SERVER = new URL('state-server.mjs', import.meta.url)

class Instance {
  readonly process: Process<Said>
  port = 0

  constructor(folder: string) {
    this.process = new Process<Said>(SERVER, { keys: KEYS, folder })
  }

  async start(): Promise<this> {
    const { port = 0 } = await this.process.until((said) => said.port !== undefined)
    this.port = port
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`
  }

  readonly ask: Ask = (init) => fetch(this.url, init)

  async killed(): Promise<void> {
    await this.process.kill()
  }
}

let folder: string
let instances: Instance[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fleet-'))
  instances = await Promise.all(Array.from({ length: 3 }, () => new Instance(folder).start()))
}, 60_000)

afterEach(async () => {
  await Promise.all(instances.map((instance) => instance.killed()))
  await rm(folder, { recursive: true, force: true })
})

function at(index: number): Instance {
  const instance = instances[index]
  if (instance === undefined) throw new Error(`There is no instance ${index}.`)
  return instance
}

const effects = (): Said[] => instances.flatMap(({ process }) => process.heard).filter(({ effect }) => effect)

const CONTENT: Readonly<Record<string, object>> = {
  'How many of tea?': { copies: 2 },
  'Is it a gift?': { confirm: true },
  'To whom?': { name: 'Ada' },
}

const contentFor = ({ params }: Wired): object => accepted(CONTENT[String(params?.['message'])])

test('The asking instance is killed, the answer goes to the second, and the third returns the result', async () => {
  const session: RawSession = await openCarrying(at(0).ask)
  const first = await readSegment(await session.call('order', { title: 'tea' }))
  if (first.last?.method === undefined) throw new Error('Nothing was asked.')
  await at(0).killed()
  const answered = await session.at(at(1).ask).post(answerTo(first.last, contentFor(first.last)))
  expect(answered.status).toBe(202)
  const second = await fetchSegment(session.at(at(2).ask), first.lastId)
  expect(second.last?.params?.['message']).toBe('Is it a gift?')
  if (second.last === undefined) return
  // The rest of the round, and the end, with only the last of them left.
  await at(1).killed()
  const alone = session.at(at(2).ask)
  expect((await alone.post(answerTo(second.last, contentFor(second.last)))).status).toBe(202)
  const third = await fetchSegment(alone, second.lastId)
  expect(third.last?.params?.['message']).toBe('To whom?')
  if (third.last === undefined) return
  expect((await alone.post(answerTo(third.last, contentFor(third.last)))).status).toBe(202)
  const { last } = await fetchSegment(alone, third.lastId)
  expect(last).toMatchObject({ id: 1 })
  expect(textOf(last)).toBe('2 of tea to Ada, wrapped.')
  expect(effects().map(({ effect }) => effect)).toEqual(['reserve', 'charge', 'ship'])
  expect(new Set(effects().map(({ pid }) => pid)).size).toBe(3)
})

test('The same answer sent to two instances leaves one end of the call', async () => {
  const session = await openCarrying(at(0).ask)
  const first = await readSegment(await session.call('order', { title: 'tea' }))
  if (first.last === undefined) throw new Error('Nothing was asked.')
  const answer = answerTo(first.last, contentFor(first.last))
  const [one, other] = await Promise.all([session.at(at(1).ask).post(answer), session.at(at(2).ask).post(answer)])
  expect([one?.status, other?.status]).toEqual([202, 202])
  // Once a segment has run to its end, no instance runs it again.
  const charged = effects().filter(({ effect }) => effect === 'charge').length
  expect((await session.at(at(0).ask).post(answer)).status).toBe(202)
  expect(effects().filter(({ effect }) => effect === 'charge')).toHaveLength(charged)
  const fetched = await Promise.all(instances.map(({ ask }) => fetchSegment(session.at(ask), first.lastId)))
  const states = new Set(fetched.map(({ last }) => stateOf(last)))
  expect(states.size).toBe(1)
  // Whoever did it twice did it under the same key.
  expect(new Set(effects().map(({ key }) => key)).size).toBe(2)
})

test('An instance that dies while it serves an answer has not acknowledged it: sent again, another one resumes the call', async () => {
  const session = await openCarrying(at(0).ask)
  const first = await readSegment(await session.call('slow'))
  const answer = answerTo(first.last, accepted({ confirm: true }))
  const lost = session.at(at(1).ask).post(answer)
  const failure = lost.then(
    () => 'answered',
    () => 'lost',
  )
  await at(1).process.until(({ effect }) => effect === 'work')
  await at(1).killed()
  expect(await failure).toBe('lost')
  const again = session.at(at(2).ask).post(answer)
  await at(2).process.until(({ effect }) => effect === 'work')
  at(2).process.tell({ open: true })
  expect((await again).status).toBe(202)
  expect(textOf((await fetchSegment(session, first.lastId)).last)).toBe('Worked.')
  expect(new Set(effects().map(({ key }) => key)).size).toBe(1)
})

test('A call that was cancelled on one instance does not go on on another', async () => {
  const session = await openCarrying(at(0).ask)
  const first = await readSegment(await session.call('order', { title: 'tea' }))
  if (first.last === undefined) throw new Error('Nothing was asked.')
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
  expect((await session.at(at(1).ask).post(cancel)).status).toBe(202)
  expect((await session.at(at(2).ask).post(answerTo(first.last, contentFor(first.last)))).status).toBe(202)
  expect(effects().map(({ effect }) => effect)).toEqual(['reserve'])
})

test('A question that was lost with its stream and its instance is had from another one', async () => {
  const session = await openCarrying(at(0).ask)
  const first = await readSegment(await session.call('order', { title: 'tea' }))
  // The event that the stream began with: all that a client has that lost it before the question.
  const began = first.events[0]?.id ?? ''
  expect(began).not.toBe(first.lastId)
  await at(0).killed()
  const again = await fetchSegment(session.at(at(1).ask), began)
  expect(again.last).toEqual(first.last)
})

/** Passes connections on to one instance at a time, as a load balancer in front of them would. */
class Switch {
  target: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(target: number) {
    this.target = target
    this.#server = createServer((near) => {
      const far = connectTcp(this.target, '127.0.0.1')
      for (const socket of [near, far]) {
        this.#sockets.add(socket)
        socket.on('close', () => this.#sockets.delete(socket))
        socket.on('error', () => {
          near.destroy()
          far.destroy()
        })
      }
      near.pipe(far).pipe(near)
    })
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`
  }

  async close(): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await once(this.#server, 'close')
  }
}

/** Our client, in one of the revisions, behind the switch. */
async function behind(gate: Switch, options: ClientOptions): Promise<Client> {
  return connect(await gate.listen(), { logger: { warn: () => {}, error: () => {} }, ...options })
}

test.each(['2025-11-25', '2025-06-18'])(
  'Our client in %s has its result from another instance when the one that asked is killed',
  async (revision) => {
    const gate = new Switch(at(0).port)
    const asked: string[] = []
    const client = await behind(gate, {
      revision,
      onElicit: async ({ message }: FormQuestion) => {
        asked.push(message)
        if (asked.length === 1) {
          await at(0).killed()
          gate.target = at(1).port
        }
        return { action: 'accept', content: CONTENT[message] as Record<string, string> }
      },
    })
    const progress: unknown[] = []
    const call = client.callTool('order', { title: 'tea' }, { onProgress: (each) => void progress.push(each) })
    expect(await call).toMatchObject({ content: [{ text: '2 of tea to Ada, wrapped.' }] })
    expect(asked).toEqual(['How many of tea?', 'Is it a gift?', 'To whom?'])
    expect(effects().map(({ effect }) => effect)).toEqual(['reserve', 'charge', 'ship'])
    expect(progress).toMatchObject([{ progress: 1, message: 'halfway' }])
    await client.close()
    await gate.close()
  },
)

test('Our client waits while its user thinks, with no instance there at all', async () => {
  const gate = new Switch(at(0).port)
  const client = await behind(gate, {
    onElicit: async ({ message }: FormQuestion) => {
      if (message === 'How many of tea?') {
        await Promise.all(instances.map((instance) => instance.killed()))
        const next = await new Instance(folder).start()
        instances.push(next)
        gate.target = next.port
      }
      return { action: 'accept', content: CONTENT[message] as Record<string, string> }
    },
    revision: '2025-11-25',
  })
  const result = await client.callTool('order', { title: 'tea' })
  expect(result).toMatchObject({ content: [{ text: '2 of tea to Ada, wrapped.' }] })
  await client.close()
  await gate.close()
})

test('The official v1 client, which does not say that it carries anything, is given nothing to carry', async () => {
  const seen: unknown[] = []
  const answerers = {
    elicit: (params: { message: string }) => {
      seen.push(params)
      return { action: 'accept' as const, content: CONTENT[params.message] as Record<string, string> }
    },
  }
  const peer = await connectV1(answerers, new URL(at(0).url), async () => {})
  const { content = [] } = await peer.call('order', { title: 'tea' })
  expect(content).toMatchObject([{ text: '2 of tea to Ada, wrapped.' }])
  expect(seen).toHaveLength(3)
  expect(JSON.stringify(peer.received)).not.toContain('state/request')
  expect(peer.problems).toEqual([])
  await peer.close()
})
