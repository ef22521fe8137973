// An HTTP client that sends the token with every request to its server, and has a request that was refused sent again after a login.
// The token goes to no other address: this client knows only one, and follows no redirects.
import type { HeaderLookup, HttpClient, HttpResponseListener } from '../transports/http-client.ts'
import { ClientError, wrongOption } from '../errors.ts'
import { readChallenge } from './challenge.ts'
import type { OAuthSession } from './session.ts'
import { newAttempt } from './session.ts'

type Send = (headers: readonly string[], listener: HttpResponseListener) => () => void

export function authorizedClient(http: HttpClient, session: OAuthSession): HttpClient {
  return {
    post: (headers, body, listener) =>
      new AuthorizedRequest(session, headers, listener, (all, inner) => http.post(all, body, inner)).start(),
    open: (method, headers, isIdle, listener) => {
      const send: Send = (all, inner) => http.open(method, all, isIdle, inner)
      // The end of a session is not worth a login.
      if (method === 'DELETE') return send(withToken(headers, session.token), listener)
      return new AuthorizedRequest(session, headers, listener, send).start()
    },
    close: () => http.close(),
  }
}

/** One request, sent as often as the session can help it. The listener sees only the last response. */
class AuthorizedRequest implements HttpResponseListener {
  readonly #session: OAuthSession
  readonly #headers: readonly string[]
  readonly #listener: HttpResponseListener
  readonly #send: Send
  readonly #attempt = newAttempt()
  readonly #cancelled = new AbortController()
  #abort: () => void = () => {}
  /** True while the response that arrives is not the listener's. */
  #isRefused = false

  constructor(session: OAuthSession, headers: readonly string[], listener: HttpResponseListener, send: Send) {
    this.#session = session
    this.#headers = headers
    this.#listener = listener
    this.#send = send
  }

  start(): () => void {
    if (this.#session.isReady) this.#sendNow()
    else this.#sendAfter(this.#session.prepare(this.#cancelled.signal))
    return () => {
      this.#cancelled.abort()
      this.#abort()
    }
  }

  head(status: number, header: HeaderLookup): void {
    if (status === 401 || status === 403) {
      const challenge = readChallenge(header('www-authenticate'))
      if (this.#session.mayRecover(status, challenge, this.#attempt)) {
        this.#isRefused = true
        this.#abort()
        return this.#sendAfter(this.#session.recover(status, challenge, this.#attempt, this.#cancelled.signal))
      }
    }
    this.#listener.head(status, header)
  }

  data(chunk: Uint8Array): void {
    if (!this.#isRefused) this.#listener.data(chunk)
  }

  end(): void {
    if (!this.#isRefused) this.#listener.end()
  }

  failed(error: unknown, wasSent: boolean): void {
    if (!this.#isRefused) this.#listener.failed(error, wasSent)
  }

  #sendAfter(ready: Promise<void>): void {
    const resume = this.#listener.pauseClock?.()
    const isCancelled = (): boolean => this.#cancelled.signal.aborted
    ready.then(
      () => {
        resume?.()
        if (!isCancelled()) this.#sendNow()
      },
      (error: unknown) => {
        resume?.()
        // Nothing that was sent has had an effect.
        if (!isCancelled()) this.#listener.failed(copyOf(error), false)
      },
    )
  }

  #sendNow(): void {
    this.#isRefused = false
    this.#attempt.token = this.#session.token
    try {
      this.#abort = this.#send(withToken(this.#headers, this.#attempt.token), this)
    } catch (error) {
      this.#listener.failed(error, false)
    }
  }
}

/** One login may fail for several calls, and each adds its own round to its error. */
function copyOf(error: unknown): unknown {
  if (!(error instanceof ClientError)) return error
  const { code, message, cause, status } = error
  return new ClientError(code, message, { cause, ...(status !== undefined && { status }) })
}

function withToken(headers: readonly string[], token: string | undefined): readonly string[] {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === 'authorization') {
      throw wrongOption('headers: Authorization is set by oauth. Remove it from headers.')
    }
  }
  return token === undefined ? headers : [...headers, 'Authorization', `Bearer ${token}`]
}
