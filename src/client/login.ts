// Logs in and out apart from a connection.
import type { OAuthOptions } from './oauth/options.ts'
import type { OAuthSession } from './oauth/session.ts'
import { readUrl } from './connect.ts'
import type { ClientOptions } from './options.ts'
import { DEFAULT_NAME } from './options.ts'

/** Options of `login()`. */
export interface LoginOptions extends Pick<ClientOptions, 'fetch' | 'name' | 'signal'> {
  /** How to log in, and the store that keeps the tokens. */
  oauth: OAuthOptions
}

/**
 * Logs in at a server ahead of the first call, and saves the tokens in `oauth.store`. A login that was saved before is replaced.
 *
 * ```ts
 * await login('https://mcp.example.com/mcp', { oauth: { store, redirectUrl, onAuthorize } })
 * ```
 */
export async function login(server: string | URL, options: LoginOptions): Promise<void> {
  await withSession(server, options, (session, signal) => session.logIn(signal))
}

/**
 * Revokes the tokens of a server as far as its authorization server supports that, and deletes them from `oauth.store` in any case.
 * Returns false if there were none.
 */
export async function logout(server: string | URL, options: LoginOptions): Promise<boolean> {
  return withSession(server, options, (session, signal) => session.logOut(signal))
}

async function withSession<T>(
  server: string | URL,
  { oauth, fetch, name = DEFAULT_NAME, signal = new AbortController().signal }: LoginOptions,
  run: (session: OAuthSession, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const url = readUrl(server)
  const { openSession } = await import('./oauth/index.ts')
  const session = openSession({ server: url, oauth, name, fetch })
  try {
    return await run(session, signal)
  } finally {
    session.close()
  }
}
