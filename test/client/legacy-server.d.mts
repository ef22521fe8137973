import type { IncomingMessage, ServerResponse } from 'node:http'
export interface Listening {
  readonly url: string
  readonly sessions: ReadonlyMap<string, unknown>
  readonly close: () => Promise<void>
}

export function listen(version: 'v1' | 'v2', how?: 'apart'): Promise<Listening>

/** `isRefused` may answer a request in place of the server. */
export function listenSse(
  isRefused?: (request: IncomingMessage, response: ServerResponse) => boolean,
): Promise<Listening>
