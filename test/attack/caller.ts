// A caller with a principal, and many requests of it.
import { Agent, request } from 'node:http'
import { onTestFinished } from 'vitest'
import type { Target } from './target.ts'

export interface Answer {
  readonly status: number
  readonly text: string
  readonly sessionId: string | undefined
}

const NEWEST = '2026-07-28'

/** One caller with connections of its own. */
export class Caller {
  readonly #url: string
  readonly #principal: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

  constructor({ url }: Target, principal: string) {
    this.#url = url
    this.#principal = principal
    onTestFinished(() => this.#agent.destroy())
  }

  /** A request of 2026-07-28. */
  call(method: string, params: object, id: unknown = 1, untilText?: string): Promise<Answer> {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': NEWEST,
      'io.modelcontextprotocol/clientCapabilities': {
        elicitation: {},
        extensions: { 'io.modelcontextprotocol/tasks': {} },
      },
    }
    const { name = '' } = params as { name?: string }
    const headers = { 'MCP-Protocol-Version': NEWEST, 'Mcp-Method': method, 'Mcp-Name': name }
    return this.post(JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } }), headers, untilText)
  }

  /** Begins an older session. Returns the headers of its requests. */
  async begin(revision: string, capabilities: object = {}): Promise<Record<string, string>> {
    const params = { protocolVersion: revision, capabilities, clientInfo: { name: 'attacker', version: '1' } }
    const { sessionId = '' } = await this.post(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }))
    return { 'Mcp-Session-Id': sessionId, 'MCP-Protocol-Version': revision }
  }

  /** Resolves when the response, or the first event of a stream, is there: `untilText` is in the text then. */
  post(body: string | undefined, headers: Record<string, string> = {}, untilText?: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(this.#url, {
        method: body === undefined ? 'GET' : 'POST',
        agent: this.#agent,
        headers: {
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          Accept: body === undefined ? 'text/event-stream' : 'application/json, text/event-stream',
          'X-Principal': this.#principal,
          ...headers,
        },
      })
      sent.on('error', reject)
      sent.on('response', (response) => {
        let text = ''
        const sessionId = response.headers['mcp-session-id'] as string | undefined
        const done = (): void => resolve({ status: response.statusCode ?? 0, text, sessionId })
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
          if (untilText !== undefined && text.includes(untilText)) done()
        })
        response.on('end', done)
        response.on('error', reject)
      })
      sent.end(body)
    })
  }
}

/** Runs `once` so many times, a few at a time. */
export async function flood(times: number, atOnce: number, once: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const run = async (): Promise<void> => {
    while (next < times) await once((next += 1))
  }
  await Promise.all(Array.from({ length: atOnce }, run))
}

/** Makes a request that is kept after its answer, or while it waits for one. Returns what the caller got. */
export type Keeping = (padding: string, i: number) => Promise<'kept' | 'refused'>

/** The ways to have a server keep requests. Each prepares what its requests need. */
export const KEPT: Readonly<Record<string, (caller: Caller) => Promise<Keeping>>> = {
  'older subscriptions': async (caller) => {
    const headers = await caller.begin('2025-11-25')
    return async (padding, id) => {
      const params = { uri: `note://${id}`, _meta: { padding } }
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'resources/subscribe', params })
      return kept(await caller.post(body, headers), '"result":{}')
    }
  },
  subscriptions: async (caller) => async (padding, id) => {
    const params = { notifications: {}, padding }
    return kept(await caller.call('subscriptions/listen', params, id, 'acknowledged'), 'acknowledged')
  },
  'waits for the result of a task': async (caller) => {
    const headers = await caller.begin('2025-11-25', { elicitation: {} })
    const order = { name: 'work', arguments: {}, task: {} }
    const created = await caller.post(
      JSON.stringify({ jsonrpc: '2.0', id: 'task', method: 'tools/call', params: order }),
      headers,
    )
    const [, taskId = ''] = /"taskId":"(\w+)"/.exec(created.text) ?? []
    return async (padding, id) => {
      const params = { taskId, _meta: { padding } }
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tasks/result', params })
      return kept(await caller.post(body, headers, 'elicitation/create'), 'elicitation/create')
    }
  },
  'calls that ask': async (caller) => {
    const headers = await caller.begin('2025-11-25', { elicitation: {} })
    return async (padding, id) => {
      const params = { name: 'ask', arguments: {}, _meta: { padding } }
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
      return kept(await caller.post(body, headers, 'elicitation/create'), 'elicitation/create')
    }
  },
  'answers while another question is open': async (caller) => {
    const headers = await caller.begin('2025-11-25', { elicitation: {} })
    return async (padding, id) => {
      const params = { name: 'askTwo', arguments: {} }
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
      const { text } = await caller.post(body, headers, 'One?')
      const [, askId] = /"id":"(ask-[\w-]+)"/.exec(text) ?? []
      const result = { action: 'accept', content: { confirm: true }, padding }
      const answer = await caller.post(JSON.stringify({ jsonrpc: '2.0', id: askId, result }), headers)
      // The reason of a refusal comes on the stream of the call.
      if (answer.status !== 202) throw new Error(`The answer was not taken: ${answer.text}`)
      return 'kept'
    }
  },
}

function kept({ text }: Answer, expected: string): 'kept' | 'refused' {
  if (text.includes(expected)) return 'kept'
  if (text.includes('`maxBufferedBytes`')) return 'refused'
  throw new Error(`The answer is neither: ${text.slice(0, 500)}`)
}
