// How a login fails. Words of other servers are cleaned before they become part of a message.
import { AuthorizationResponseError, ResponseBodyError } from 'oauth4webapi'
import { reasonOf } from '../../protocol/text.ts'
import { ClientError, sentence } from '../errors.ts'
import { cleanWords } from '../transports/http-status.ts'

export function loginFailed(why: string, cause?: unknown): ClientError {
  return new ClientError('LOGIN_FAILED', `Cannot log in: ${sentence(why)}`, cause === undefined ? {} : { cause })
}

/** Names what was being done. An error that says so already is kept. */
export function failedAt(what: string, error: unknown): ClientError {
  if (error instanceof ClientError) return error
  return loginFailed(`${what}: ${wordsOf(error)}`, error)
}

/** The error code of OAuth in an error, such as `invalid_grant`. */
export function oauthCode(error: unknown): string | undefined {
  return error instanceof ResponseBodyError || error instanceof AuthorizationResponseError ? error.error : undefined
}

function wordsOf(error: unknown): string {
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    const description = cleanWords([error.error_description])
    const code = cleanWords([error.error]) ?? 'an error'
    return description === undefined ? `the server answered ${code}` : `the server answered ${code}: ${description}`
  }
  // The message of a failed fetch says nothing; its cause does.
  const { cause } = (error ?? {}) as { cause?: unknown }
  return error instanceof TypeError && cause instanceof Error ? reasonOf(cause) : reasonOf(error)
}
