// Where Rally reports problems to an operator, and the levels of the logs that it sends to clients.

/** Where Rally reports problems. Structural, so `console` and most loggers fit as they are. */
export interface Logger {
  warn(message: string, details?: Record<string, unknown>): void
  error(message: string, details?: Record<string, unknown>): void
}

/** From the least to the most severe. A client that asks for one level receives that level and everything above it. */
export const LOGGING_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const

export type LoggingLevel = (typeof LOGGING_LEVELS)[number]
