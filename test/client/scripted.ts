// A server that says just what a test tells it to, in this process: for what no honest server does.
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'

export interface Received {
  readonly id: number
  readonly method: string
  readonly params: Record<string, unknown>
}

/** A result or, with `error`, an error. A function is called with what else a server can do while it serves. */
export type Said = object | ((serving: Serving) => object | Promise<object>)

export interface Serving {
  readonly notify: (method: string, params: object) => void
  /** Whether the client has cancelled; resolves when it does. */
  readonly cancelled: Promise<void>
}

type Script = (request: Received, number: number) => Said

export interface Scripted {
  readonly client: Client
  /** All but the discovery. */
  readonly requests: Received[]
}

const DISCOVERED = {
  supportedVersions: ['2026-07-28'],
  capabilities: {},
  ttlMs: 0,
  cacheScope: 'private',
  resultType: 'complete',
}

/** Connects to a server that answers the n-th request, counted from 0, with what the script says. */
export async function scripted(script: Script, options: ClientOptions = {}): Promise<Scripted> {
  const requests: Received[] = []
  const app = {
    async dispatch(message: unknown, { cancel, notify }: Parameters<AppDispatch>[1]) {
      const request = message as Received
      const { id, method } = request
      const isDiscovery = method === 'server/discover'
      if (!isDiscovery) requests.push(request)
      const said = isDiscovery ? DISCOVERED : script(request, requests.length - 1)
      const cancelled = new Promise<void>((resolve) => cancel.listen(resolve))
      const serving: Serving = {
        cancelled,
        notify: (name, params) => void notify(JSON.stringify({ jsonrpc: '2.0', method: name, params })),
      }
      const answer = typeof said === 'function' ? await said(serving) : said
      const isError = 'error' in answer
      return { text: JSON.stringify({ jsonrpc: '2.0', id, ...(isError ? answer : { result: answer }) }) }
    },
  }
  return { client: await connect(app, options), requests }
}

type AppDispatch = (message: unknown, context: Context) => unknown

interface Context {
  readonly cancel: { listen(listener: () => void): void }
  readonly notify: (text: string) => unknown
}

export const done = (text: string): object => ({ resultType: 'complete', content: [{ type: 'text', text }] })

/** A round that asks for a yes under each key. */
export const asks = (keys: readonly string[], requestState?: string): object => ({
  resultType: 'input_required',
  inputRequests: Object.fromEntries(keys.map((key) => [key, confirmation(key)])),
  ...(requestState !== undefined && { requestState }),
})

export const deferred = (requestState: string): object => ({ resultType: 'input_required', requestState })

const confirmation = (message: string): object => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } }, required: ['yes'] },
  },
})

/** Says yes to everything. */
export const yes: ClientOptions = { onElicit: () => ({ action: 'accept', content: { yes: true } }) }

export const YES = { action: 'accept', content: { yes: true } } as const
