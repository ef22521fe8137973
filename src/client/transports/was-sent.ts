// Whether anything of a request may have reached the server that a connection failed to.

/** Not where the connection could not be made. */
export function wasSent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(wasSent)
  const { syscall, code } = (error ?? {}) as { syscall?: unknown; code?: unknown }
  if (syscall === 'connect' || syscall === 'getaddrinfo') return false
  return typeof code !== 'string' || !TLS.test(code)
}

const TLS = /^(ERR_TLS_|ERR_SSL_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_)/
