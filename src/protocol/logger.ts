// Where Rally tells an operator what went wrong. Structural, so that `console` and most loggers fit as they are.

export interface Logger {
  warn(message: string, details?: Record<string, unknown>): void
  error(message: string, details?: Record<string, unknown>): void
}
