// The official clients, in their 2025-era ways, connected over each wire that they speak.
import { fileURLToPath } from 'node:url'
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CreateMessageResult, ElicitResult, Root } from '@modelcontextprotocol/sdk/types.js'
import {
  CreateMessageRequestSchema,
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { serve } from 'mcp-rally/node'
import { olderApp } from './app.mjs'
import { olderProblems } from './spec.ts'

export interface Asked {
  message: string
  url?: string
  elicitationId?: string
  requestedSchema?: unknown
}

/** How the user of a client answers. What is given is what the client declares. */
export interface Answerers {
  elicit?: (asked: Asked) => ElicitResult | Promise<ElicitResult>
  sample?: () => CreateMessageResult
  roots?: () => Root[]
}

export interface Said {
  content?: { type: string; text?: string }[]
  isError?: boolean
  structuredContent?: unknown
}

/** What both versions of the client can be asked to do, and how they tell of it. */
export interface Peer {
  client: ClientV1 | ClientV2
  call(name: string, args?: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<Said>
  /** Every message that came in, in order. */
  received: Wired[]
  /** What of it the revision does not allow. */
  problems: string[]
  /** Resolves with the first message of this method that came in, or comes. */
  seen(method: string): Promise<Wired>
  close(): Promise<void>
}

export interface Wired {
  id?: string | number
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
}

interface Transport {
  send(message: never, options?: never): Promise<void>
  onmessage?: ((message: never, extra?: never) => void) | undefined
}

const PROCESS = fileURLToPath(new URL('./process.mjs', import.meta.url))
const INFO = { name: 'older-client', version: '1.0.0' }

export interface Wire {
  name: string
  connect: (answerers: Answerers) => Promise<Peer>
}

export const wires: readonly Wire[] = [
  { name: 'the v1 client over HTTP', connect: (answerers) => overHttp(connectV1, answerers) },
  { name: 'the v2 client over HTTP', connect: (answerers) => overHttp(connectV2, answerers) },
  { name: 'the v1 client over stdio', connect: (answerers) => connectV1(answerers, stdioV1(), async () => {}) },
  { name: 'the v2 client over stdio', connect: (answerers) => connectV2(answerers, stdioV2(), async () => {}) },
]

type Connect<T> = (answerers: Answerers, transport: T | URL, stop: () => Promise<void>) => Promise<Peer>

async function overHttp<T>(connect: Connect<T>, answerers: Answerers): Promise<Peer> {
  const { url, close } = await serve(olderApp(), { port: 0, drainMs: 100 })
  return connect(answerers, new URL(url), close)
}

function stdioV1(): StdioV1 {
  return new StdioV1({ command: process.execPath, args: [PROCESS], stderr: 'inherit' })
}

function stdioV2(): StdioV2 {
  return new StdioV2({ command: process.execPath, args: [PROCESS], stderr: 'inherit' })
}

export async function connectV1(
  answerers: Answerers,
  to: HttpV1 | StdioV1 | URL,
  stop: () => Promise<void>,
): Promise<Peer> {
  const transport = to instanceof URL ? new HttpV1(to) : to
  const client = new ClientV1(INFO, { capabilities: capabilitiesOf(answerers) })
  const { elicit, sample, roots } = answerers
  if (elicit) client.setRequestHandler(ElicitRequestSchema, ({ params }) => (answerers.elicit ?? elicit)(params))
  if (sample) client.setRequestHandler(CreateMessageRequestSchema, () => (answerers.sample ?? sample)())
  if (roots) client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: (answerers.roots ?? roots)() }))
  for (const schema of [
    ElicitationCompleteNotificationSchema,
    LoggingMessageNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema,
  ]) {
    client.setNotificationHandler(schema, () => {})
  }
  const watched = watch(transport)
  await client.connect(transport)
  return peer(client, watched, stop)
}

async function connectV2(answerers: Answerers, to: StdioV2 | URL, stop: () => Promise<void>): Promise<Peer> {
  const transport = to instanceof URL ? new HttpV2(to) : to
  const client = new ClientV2(INFO, {
    versionNegotiation: { mode: 'legacy' },
    capabilities: capabilitiesOf(answerers),
  })
  const { elicit, sample, roots } = answerers
  if (elicit) client.setRequestHandler('elicitation/create', ({ params }) => (answerers.elicit ?? elicit)(params))
  if (sample) client.setRequestHandler('sampling/createMessage', () => (answerers.sample ?? sample)())
  if (roots) client.setRequestHandler('roots/list', () => ({ roots: (answerers.roots ?? roots)() }))
  const watched = watch(transport)
  await client.connect(transport)
  return peer(client, watched, stop)
}

function capabilitiesOf({ elicit, sample, roots }: Answerers): object {
  return {
    ...(elicit && { elicitation: { form: {}, url: {} } }),
    ...(sample && { sampling: {} }),
    ...(roots && { roots: { listChanged: true } }),
  }
}

function peer(
  client: ClientV1 | ClientV2,
  watched: Pick<Peer, 'received' | 'problems' | 'seen'>,
  stop: () => Promise<void>,
): Peer {
  return {
    client,
    ...watched,
    call: (name, args = {}, options = {}) =>
      client instanceof ClientV1
        ? (client.callTool({ name, arguments: args }, undefined, options) as Promise<Said>)
        : (client.callTool({ name, arguments: args }, options) as Promise<Said>),
    close: async () => {
      await client.close()
      await stop()
    },
  }
}

/** Writes down what comes in over a wire, holds it against the revision, and lets it through. */
function watch(transport: Transport): Pick<Peer, 'received' | 'problems' | 'seen'> {
  const received: Wired[] = []
  const problems: string[] = []
  const methods = new Map<unknown, string>()
  const waiting = new Set<() => void>()
  const send = transport.send.bind(transport)
  let listener: ((message: never, extra?: never) => void) | undefined
  Object.assign(transport, {
    send: (message: never, options?: never) => {
      const { id, method } = message as Wired
      if (id !== undefined && method !== undefined) methods.set(id, method)
      return send(message, options)
    },
  })
  Object.defineProperty(transport, 'onmessage', {
    get: () => listener,
    set: (wanted: typeof listener) => {
      listener = (message, extra) => {
        received.push(message)
        const { id, method } = message as Wired
        problems.push(...olderProblems(message, method === undefined ? methods.get(id) : undefined))
        for (const look of waiting) look()
        wanted?.(message, extra)
      }
    },
  })
  const seen = (method: string): Promise<Wired> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = received.find((message) => message.method === method)
        if (found === undefined) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  return { received, problems, seen }
}
