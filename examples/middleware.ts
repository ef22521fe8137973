// Three middlewares to copy: a rate limit for each principal, an audit log, and a maintenance switch. docs/middleware.md shows them.
import { type Middleware, ProtocolError, Unavailable } from 'mcp-rally'
import { type RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible'

export function rateLimit(limiter: RateLimiterAbstract): Middleware {
  return async (call, next) => {
    if (call.caller === undefined) throw new ProtocolError(-32600, 'Log in first.')
    try {
      await limiter.consume(call.caller.principal)
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused
      const { msBeforeNext: retryAfterMs } = refused
      throw new Unavailable('Too many requests.', { retryAfterMs, isUnprocessed: true })
    }
    return next()
  }
}

export function audit(write: (line: object) => void): Middleware {
  return async ({ method, target, flow, round, caller, client }, next) => {
    const line = { at: new Date().toISOString(), who: caller?.principal, by: client.name, method, target, flow, round }
    try {
      const result = await next()
      write({ ...line, outcome: result.outcome })
      return result
    } catch (error) {
      write({ ...line, outcome: error instanceof Error ? error.message : 'failed' })
      throw error
    }
  }
}

export function maintenance(isDown: () => boolean): Middleware {
  return (call, next) => {
    if (call.method !== 'tools/call' || !isDown()) return next()
    throw new Unavailable('Down for maintenance.', { retryAfterMs: 5_000, isUnprocessed: true })
  }
}
