// The attacks that brought a server down, or kept it from serving others, before there were limits. For the drill.
import type { ServeOptions } from 'mcp-rally/node'
import { call, request } from '../wire/messages.ts'
import { post } from '../wire/socket.ts'
import { Caller, flood, KEPT } from './caller.ts'
import type { AttackedAppOptions, Target } from './target.ts'
import { head } from './target.ts'

const MIB = 1024 * 1024

export interface Attack {
  readonly name: string
  /** What it did before. */
  readonly before: string
  readonly serve?: ServeOptions
  /** Callers have principals then. */
  readonly app?: AttackedAppOptions
  /** What the limits let the attacker store, in megabytes. Default 0. */
  readonly storesMb?: number
  /** Returns what the attacker got, such as the status of each response. */
  readonly run: (target: Target) => Promise<readonly (string | number)[]>
}

export const ATTACKS: readonly Attack[] = [
  {
    name: 'bodies in chunks of one byte',
    before: '37 MB kill a heap of 1 GB',
    run: async (target) => {
      const connections = await target.connections(37)
      for (const each of connections) each.write(head({ 'Transfer-Encoding': 'chunked' }))
      const megabyte = Buffer.from('1\r\n \r\n'.repeat(MIB))
      const answers = connections.map(async (each) => {
        each.write(megabyte)
        each.write('0\r\n\r\n')
        return (await each.next()).status
      })
      return outcomes(answers)
    },
  },
  {
    name: '250 subscriptions with ids of 4 MiB',
    before: 'the server is killed',
    app: {},
    run: async (target) => {
      const attacker = new Caller(target, 'ann')
      const id = 'i'.repeat(4 * MIB - 1_000)
      return repeated(
        250,
        4,
        async () => (await attacker.call('subscriptions/listen', { notifications: {} }, id)).status,
      )
    },
  },
  {
    name: '1,403 requests of older subscriptions',
    before: 'the server is killed',
    app: {},
    run: async (target) => {
      const attacker = new Caller(target, 'ann')
      return repeated(1_403, 8, async (i) => {
        const headers = await attacker.begin('2025-03-26')
        const subscribe = (id: number): object => {
          const params = { uri: `note://${i}/${id}/${'x'.repeat(8_000)}` }
          return { jsonrpc: '2.0', id, method: 'resources/subscribe', params }
        }
        const batch = Array.from({ length: 20 }, (_, id) => subscribe(id))
        return (await attacker.post(JSON.stringify(batch), headers)).status
      })
    },
  },
  {
    name: 'one caller leaves 3,000 questions open',
    before: 'no older client is asked after 1.6 s',
    app: {},
    run: async (target) => {
      const attacker = new Caller(target, 'ann')
      const params = { name: 'ask', arguments: {} }
      const headers = await attacker.begin('2025-11-25', { elicitation: {} })
      return repeated(3_000, 50, async (id) => {
        const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
        const { text } = await attacker.post(body, headers, 'elicitation/create')
        return text.includes('elicitation/create') ? 'asked' : 'refused'
      })
    },
  },
  {
    name: 'tasks with arguments of 1 MiB',
    before: 'arguments did not count',
    app: { limits: { maxTaskBytes: 16 * MIB } },
    storesMb: 17,
    run: async (target) => {
      const attacker = new Caller(target, 'ann')
      const order = { name: 'work', arguments: { text: 'x'.repeat(MIB) } }
      return repeated(200, 4, async () => {
        const { text } = await attacker.call('tools/call', order)
        return text.includes('limits.maxTaskBytes') ? 'over its share' : 'created'
      })
    },
  },
  {
    name: 'tasks with arguments of 1 MiB and a ttl of 100 ms',
    before: '200 of them kill the server',
    app: { limits: { maxTaskBytes: 16 * MIB } },
    run: async (target) => {
      const attacker = new Caller(target, 'ann')
      const headers = await attacker.begin('2025-11-25', { elicitation: {} })
      const params = { name: 'work', arguments: { text: 'x'.repeat(MIB) }, task: { ttl: 100 } }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      return repeated(1_000, 4, async () => {
        const { text } = await attacker.post(body, headers)
        return text.includes('limits.maxTaskBytes') ? 'over its share' : 'created'
      })
    },
  },
  ...Object.entries(KEPT).map(([name, prepare]): Attack => ({
    name: `100 requests of 4 MiB that are kept: ${name}`,
    before: 'all were kept, whole',
    app: {},
    run: async (target) => {
      const keep = await prepare(new Caller(target, 'ann'))
      return repeated(100, 1, (i) => keep('x'.repeat(4 * MIB - 1_000), i))
    },
  })),
  {
    name: '100 times 20,000 requests behind one that waits, on one connection',
    before: 'one is enough for a heap of 256 MB, or to overflow the stack',
    run: async (target) => {
      const behind = Buffer.from(head({ 'Content-Length': '0' }).repeat(20_000))
      return repeated(100, 4, async () => {
        const [connection] = await target.connections(1)
        connection?.write(post(call('wait')))
        connection?.socket.end(behind)
        await connection?.closed
        return 'closed'
      })
    },
  },
  {
    name: '60 bodies of 4 MiB that never end',
    before: 'no limit for all bodies together',
    run: async (target) => {
      const connections = await target.connections(60)
      const part = Buffer.alloc(4 * MIB - 1, ' ')
      for (const each of connections) each.write(head({ 'Content-Length': String(4 * MIB) }))
      const answers = connections.map(async (each) => {
        each.write(part)
        return (await each.next()).status
      })
      // The few that there is room for wait for the rest of their bodies.
      const patience = new Promise<number[]>((resolve) => setTimeout(resolve, 5_000, [BODY_OPEN]))
      return (await Promise.all(answers.map((each) => Promise.race([outcomes([each]), patience])))).flat()
    },
  },
  {
    name: '200 headers and 200 bodies that trickle',
    before: 'no deadline',
    serve: { headersMs: 2_000, bodyMs: 2_000 },
    run: async (target) => {
      const connections = await target.connections(400)
      for (const [index, each] of connections.entries()) {
        each.write(index % 2 === 0 ? 'POST /mcp HTTP/1.1\r\nX-Slow: ' : head({ 'Content-Length': '100000' }))
      }
      const trickle = setInterval(() => {
        for (const each of connections) each.write(' ')
      }, 100)
      const seen = await outcomes(connections.map(async (each) => (await each.next()).status))
      clearInterval(trickle)
      return seen
    },
  },
  {
    name: '40 responses of 12 MiB that nobody reads',
    before: 'no write-stall timeout',
    serve: { writeStallMs: 2_000 },
    run: async (target) => {
      const connections = await target.connections(40)
      for (const { socket } of connections) socket.pause()
      for (const each of connections) each.write(post(call('large', { bytes: 12 * MIB })))
      const closed = connections.map(async (each) => {
        await new Promise((resolve) => setTimeout(resolve, 4_000))
        each.socket.resume()
        await each.closed
        return 'closed'
      })
      return outcomes(closed)
    },
  },
  {
    name: '12,000 connections',
    before: 'no limit',
    serve: { maxConnections: 2_000 },
    run: async (target) => {
      const opened = await outcomes(
        Array.from({ length: 12_000 }, async () => {
          const connection = await target.connect()
          return Promise.race([connection.closed.then(() => 'closed'), wait(8_000).then(() => 'open')])
        }),
      )
      return opened
    },
  },
  {
    name: '5,000 calls that never end',
    before: 'they queue without bound',
    run: async (target) => {
      const connections = await target.connections(5_000)
      return outcomes(
        connections.map(async (each) => {
          each.write(post(call('wait')))
          return Promise.race([each.next().then(({ status }) => status), wait(8_000).then(() => 'waits')])
        }),
      )
    },
  },
  {
    name: '3,000 calls that compute for 10 ms each',
    before: 'they queue without bound',
    run: async (target) => {
      const connections = await target.connections(300)
      return (
        await Promise.all(
          connections.map(async (each) => {
            const seen: number[] = []
            for (let n = 0; n < 10; n += 1) {
              each.write(post(call('compute', { ms: 10 })))
              seen.push((await each.next()).status)
            }
            return seen
          }),
        )
      ).flat()
    },
  },
  {
    name: '2,000 subscriptions whose clients vanish',
    before: '',
    run: async (target) => {
      const connections = await target.connections(2_000)
      const listen = post(request('subscriptions/listen', { notifications: { toolsListChanged: true } }))
      return outcomes(
        connections.map(async ({ socket }) => {
          socket.write(listen)
          await new Promise((resolve) => void socket.once('data', resolve))
          socket.end()
          return 'opened'
        }),
      )
    },
  },
]

const BODY_OPEN = 0

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** A connection that was closed is an outcome too. */
async function outcomes<T extends string | number>(attempts: readonly Promise<T>[]): Promise<(T | 'closed')[]> {
  return Promise.all(attempts.map((each) => each.catch(() => 'closed' as const)))
}

async function repeated<T>(times: number, atOnce: number, once: (i: number) => Promise<T>): Promise<(T | 'closed')[]> {
  const seen: (T | 'closed')[] = []
  // A server that refuses a body closes the connection while the rest is still being sent.
  await flood(times, atOnce, async (i) => void seen.push(await once(i).catch(() => 'closed' as const)))
  return seen
}
