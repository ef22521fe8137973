// What both HTTP clients, Node's own and fetch, offer to the transports.

/** Sends one request and reports its response to a listener. Headers are a flat list: name, value, name, value. */
export interface HttpClient {
  /** Returns a function that aborts the request. The listener is not called after that. */
  post(headers: readonly string[], body: string, listener: HttpResponseListener): () => void
  /** The same without a body, for legacy servers. With `isIdle` the open request does not keep the process alive. */
  open(
    method: 'GET' | 'DELETE',
    headers: readonly string[],
    isIdle: boolean,
    listener: HttpResponseListener,
  ): () => void
  close(): void
}

export interface HttpResponseListener {
  head(status: number, header: HeaderLookup): void
  data(chunk: Uint8Array): void
  end(): void
  /** `wasSent`: true if any part of the request may have reached the server. */
  failed(error: unknown, wasSent: boolean): void
  /** The request waits for a login of the user. Returns a function that is called when the wait is over. */
  pauseClock?(): () => void
}

/** Returns the value of a response header. The name is in lower case. */
export type HeaderLookup = (name: string) => string | undefined

/** False when the connection could not be made, so that the server received nothing. */
export function wasSent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(wasSent)
  const { syscall, code } = (error ?? {}) as { syscall?: unknown; code?: unknown }
  if (syscall === 'connect' || syscall === 'getaddrinfo') return false
  return typeof code !== 'string' || !TLS_ERROR.test(code)
}

const TLS_ERROR = /^(ERR_TLS_|ERR_SSL_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_)/
