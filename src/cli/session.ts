// Connects to a server, runs a command with the client, and closes it.
import type { Client } from '../client/client.ts'
import type { Answerers } from '../client/answers/answerers.ts'
import { connect } from '../client/connect.ts'
import { clean, cleanLine } from './clean.ts'
import type { RunContext, ServerOptions } from './context.ts'
import { Interrupted } from './exit.ts'
import { oauthFor, reasonFor } from './login.ts'
import type { Server } from './server.ts'
import { headersFor, readEnvironment } from './server.ts'

export type { RunContext, ServerOptions } from './context.ts'

export async function withClient<T>(
  server: Server,
  options: ServerOptions,
  answerers: Answerers,
  context: RunContext,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const { console, env, signal, version } = context
  const isUrl = 'url' in server
  const headers = isUrl ? headersFor(server, options, env) : {}
  const variables = isUrl ? {} : { ...server.env, ...readEnvironment(options.env ?? [], env) }
  const login = isUrl && !('authorization' in headers) ? await oauthFor(server.url, options, context) : undefined
  const warn = (message: string): void => console.tell(clean(message))
  const connecting = connect(isUrl ? server.url : { ...server, env: variables }, {
    name: 'rally',
    version,
    ...answerers,
    headers,
    logger: { warn, error: warn },
    ...(login !== undefined && { oauth: login.oauth }),
    ...(options.revision !== undefined && { revision: options.revision }),
    ...(options.timeout !== undefined && { timeoutMs: options.timeout * 1000 }),
  })
  try {
    const client = await orInterrupted(connecting, signal)
    try {
      return await use(client)
    } finally {
      await client.close()
    }
  } catch (error) {
    throw reasonFor(error)
  } finally {
    login?.close()
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
