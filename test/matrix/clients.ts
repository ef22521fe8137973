// The three clients, each with the same user behind it.
import type { Transport } from '@modelcontextprotocol/client'
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { connect as connectOurs } from 'mcp-rally/client'
import type { Address } from './servers.ts'
import type { ClientName, Revision, Shown } from './table.ts'
import type { Elicited, Sampled, User } from './user.ts'

export interface MatrixClient {
  /** As the two sides have agreed. */
  readonly revision: string | undefined
  /** Calls a tool for a user, who is asked what it asks. */
  call(user: User, tool: string, args: Readonly<Record<string, string>>): Promise<Said>
  close(): Promise<void>
}

export interface Said {
  readonly text: string
  readonly isError: boolean
}

/** In the given revision, or else in whatever the two sides come to by themselves. */
type Connect = (to: Address, revision?: Revision) => Promise<MatrixClient>

export const CONNECT: Readonly<Record<ClientName, Connect>> = { ours, v2, v1 }

const INFO = { name: 'matrix', version: '1.0.0' }
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

/** Whoever is calling at the moment: the answerers of a client are given once, and serve every call. */
class Seat {
  #user: User | undefined

  get user(): User {
    if (this.#user === undefined) throw new Error('The server asks while nobody is calling.')
    return this.#user
  }

  async with(user: User, call: () => Promise<Result>): Promise<Said> {
    this.#user = user
    const { content, isError } = await call()
    return { text: content.map(({ text }) => text).join('\n'), isError: isError === true }
  }
}

interface Result {
  content: { text?: string }[]
  isError?: boolean | undefined
}

async function ours(to: Address, revision?: Revision): Promise<MatrixClient> {
  const seat = new Seat()
  const client = await connectOurs('url' in to ? to.url : to, {
    ...(revision !== undefined && { revision }),
    onElicit: ({ message, form }, { signal }) => seat.user.elicit({ mode: 'form', message, schema: form }, signal),
    onVisit: ({ message, url }, { signal }) => seat.user.elicit({ mode: 'url', message, url }, signal),
    onSample: (question, { signal }) => sampled(seat.user, question, signal),
    onRoots: (_question, { signal }) => seat.user.roots(signal),
  })
  return {
    revision: client.revision,
    call: (user, tool, args) =>
      seat.with(user, () => client.callTool(tool, args, { signal: user.signal }) as Promise<Result>),
    close: () => client.close(),
  }
}

async function v2(to: Address, revision?: Revision): Promise<MatrixClient> {
  const seat = new Seat()
  const client = new ClientV2(INFO, {
    capabilities: CAPABILITIES,
    versionNegotiation: { mode: revision === undefined ? 'auto' : 'legacy' },
    ...(revision !== undefined && { supportedProtocolVersions: [revision] }),
  })
  client.setRequestHandler('elicitation/create', ({ params }, { mcpReq }) => elicited(seat.user, params, mcpReq.signal))
  client.setRequestHandler('sampling/createMessage', ({ params }, { mcpReq }) =>
    sampled(seat.user, params, mcpReq.signal),
  )
  client.setRequestHandler('roots/list', async (_request, { mcpReq }) => ({
    roots: await seat.user.roots(mcpReq.signal),
  }))
  const transport: Transport = 'url' in to ? new HttpV2(new URL(to.url)) : new StdioV2(to)
  await client.connect(transport)
  return {
    revision: client.getNegotiatedProtocolVersion(),
    call: (user, name, args) =>
      seat.with(user, () => client.callTool({ name, arguments: args }, { signal: user.signal }) as Promise<Result>),
    close: () => client.close(),
  }
}

async function v1(to: Address): Promise<MatrixClient> {
  const seat = new Seat()
  const client = new ClientV1(INFO, { capabilities: CAPABILITIES })
  client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => elicited(seat.user, params, signal))
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }, { signal }) => sampled(seat.user, params, signal))
  client.setRequestHandler(ListRootsRequestSchema, async (_request, { signal }) => ({
    roots: await seat.user.roots(signal),
  }))
  const transport = 'url' in to ? new HttpV1(new URL(to.url)) : new StdioV1(to)
  let revision: string | undefined
  // What the transport is told is what was agreed on.
  const told = transport instanceof HttpV1 ? transport.setProtocolVersion.bind(transport) : undefined
  const setProtocolVersion = (agreed: string): void => {
    revision = agreed
    told?.(agreed)
  }
  await client.connect(Object.assign(transport, { setProtocolVersion }))
  return {
    revision,
    call: (user, name, args) =>
      seat.with(
        user,
        () => client.callTool({ name, arguments: args }, undefined, { signal: user.signal }) as Promise<Result>,
      ),
    close: () => client.close(),
  }
}

interface Elicitation {
  mode?: string | undefined
  message: string
  requestedSchema?: unknown
  url?: string
}

function elicited(user: User, question: Elicitation, signal: AbortSignal): Promise<Elicited> {
  const { mode = 'form', message, requestedSchema, url } = question
  const shown = mode === 'form' ? { mode, message, schema: requestedSchema } : { mode, message, url }
  return user.elicit(shown as Shown, signal)
}

interface Sampling {
  readonly messages: readonly { readonly content: unknown }[]
  readonly maxTokens: number
}

function sampled(user: User, { messages, maxTokens }: Sampling, signal: AbortSignal): Promise<Sampled> {
  const [{ content } = { content: {} }] = messages
  const { text = '' } = content as { text?: string }
  return user.sample({ mode: 'sample', messages, maxTokens }, text, signal)
}
