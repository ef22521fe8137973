// Connects to a server, runs a command with the client, and closes it.
import type { Client } from '../client/client.ts'
import type { Answerers } from '../client/answers/answerers.ts'
import { connect } from '../client/connect.ts'
import { clean, cleanLine } from './clean.ts'
import type { Console } from './console.ts'
import { Interrupted } from './exit.ts'
import type { Server } from './server.ts'
import { readEnvironment, readHeaders } from './server.ts'

export interface ServerOptions {
  readonly header?: readonly string[]
  readonly env?: readonly string[]
  readonly timeout?: number
  readonly json?: boolean
}

/** What a command gets from the process. */
export interface RunContext {
  readonly console: Console
  readonly env: NodeJS.ProcessEnv
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
  readonly version: string
}

export async function withClient<T>(
  server: Server,
  options: ServerOptions,
  answerers: Answerers,
  { console, env, signal, version }: RunContext,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const isUrl = 'url' in server
  const headers = isUrl ? readHeaders(options.header ?? [], env['RALLY_TOKEN']) : {}
  const variables = isUrl ? {} : readEnvironment(options.env ?? [], env)
  const warn = (message: string): void => console.tell(clean(message))
  const connecting = connect(isUrl ? server.url : { ...server, env: variables }, {
    name: 'rally',
    version,
    ...answerers,
    headers,
    logger: { warn, error: warn },
    ...(options.timeout !== undefined && { timeoutMs: options.timeout * 1000 }),
  })
  const client = await orInterrupted(connecting, signal)
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}

export function nameOf({ server }: Client): string {
  return cleanLine(server.title ?? server.name)
}

/** Rejects at once on an interrupt. No call has begun that the server would have to cancel. */
function orInterrupted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new Interrupted())
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    const over = (): void => signal.removeEventListener('abort', stop)
    promise.then(resolve, reject).finally(over)
  })
}
