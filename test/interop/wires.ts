// The official client, connected to a server over each wire that it speaks.
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  ElicitRequestParams,
  ElicitResult,
  JSONRPCMessage,
  MessageExtraInfo,
  Root,
  Transport,
  TransportSendOptions,
} from '@modelcontextprotocol/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { serve } from 'mcp-rally/node'
import { demoApp } from '../../examples/tools.ts'
import { Child, DEMO_ARGS, Printed } from './child.ts'

/** How the user of a client answers each kind of question. What is given at first is what the client declares. */
export interface Answerers {
  elicit?: (params: ElicitRequestParams) => ElicitResult | Promise<ElicitResult>
  sample?: (params: CreateMessageRequestParams) => CreateMessageResult
  roots?: () => Root[]
}

export interface Connected {
  client: Client
  /** The method of every request that went over the wire, in order. */
  requests: string[]
  /** Every message that came back, in order. */
  received: JSONRPCMessage[]
  /** What the server says on its error stream, where it is a process of its own. */
  complained: Printed
  close(): Promise<void>
}

export interface Wire {
  name: string
  /** Connects to the demo. */
  demo(answerers: Answerers): Promise<Connected>
  /** Connects to test/interop/server.mjs. */
  questions(answerers: Answerers): Promise<Connected>
}

const QUESTIONS = fileURLToPath(new URL('./server.mjs', import.meta.url))

const http: Wire = {
  name: 'HTTP',
  async demo(answerers) {
    const serving = await serve(demoApp({ keys: ['a secret of the interop tests, long enough'] }), { port: 0 })
    return overHttp(serving.url, answerers, new Printed(new PassThrough()), () => serving.close())
  },
  async questions(answerers) {
    const child = new Child(process.execPath, [QUESTIONS])
    const [, url = ''] = await child.printed.match(/listening on (\S+)/)
    return overHttp(url, answerers, child.complained, () => child.kill())
  },
}

const stdio: Wire = {
  name: 'stdio',
  demo: (answerers) => overStdio(DEMO_ARGS, answerers),
  questions: (answerers) => overStdio([QUESTIONS], answerers),
}

export const wires: readonly Wire[] = [http, stdio]

function overHttp(
  url: string,
  answerers: Answerers,
  complained: Printed,
  stop: () => Promise<unknown>,
): Promise<Connected> {
  return connect(new StreamableHTTPClientTransport(new URL(url)), answerers, complained, stop)
}

function overStdio(args: readonly string[], answerers: Answerers): Promise<Connected> {
  const command = { command: process.execPath, args: [...args, '--stdio'] }
  const transport = new StdioClientTransport({ ...command, stderr: 'pipe' })
  if (!(transport.stderr instanceof PassThrough)) throw new Error('The transport gives no error stream.')
  return connect(transport, answerers, new Printed(transport.stderr), async () => {})
}

async function connect(
  transport: Transport,
  answerers: Answerers,
  complained: Printed,
  stop: () => Promise<unknown>,
): Promise<Connected> {
  const { elicit, sample, roots } = answerers
  const client = new Client(
    { name: 'interop', version: '1.0.0' },
    {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      capabilities: {
        ...(elicit && { elicitation: { form: {}, url: {} } }),
        ...(sample && { sampling: {} }),
        ...(roots && { roots: {} }),
      },
    },
  )
  // Looked up when a question comes, so that a test may have its own user at the same client.
  if (elicit) client.setRequestHandler('elicitation/create', ({ params }) => (answerers.elicit ?? elicit)(params))
  if (sample) client.setRequestHandler('sampling/createMessage', ({ params }) => (answerers.sample ?? sample)(params))
  if (roots) client.setRequestHandler('roots/list', () => ({ roots: (answerers.roots ?? roots)() }))
  await client.connect(transport)
  const close = async (): Promise<void> => {
    await client.close()
    await stop()
  }
  return { client, complained, close, ...watch(transport) }
}

/** Writes down what goes over a wire, and lets it through. */
function watch(transport: Transport): Pick<Connected, 'requests' | 'received'> {
  const requests: string[] = []
  const received: JSONRPCMessage[] = []
  const send = transport.send.bind(transport)
  const receive = transport.onmessage?.bind(transport)
  Object.assign(transport, {
    send: (message: JSONRPCMessage, options?: TransportSendOptions) => {
      if ('method' in message && 'id' in message) requests.push(message.method)
      return send(message, options)
    },
    onmessage: (message: JSONRPCMessage, extra?: MessageExtraInfo) => {
      received.push(message)
      receive?.(message, extra)
    },
  })
  return { requests, received }
}
