// Every default of the seal, in one place. Times are milliseconds, sizes bytes.

export const defaults = {
  /** How long the client may think about one round. */
  ttl: 600_000,
  /** How long a whole flow may take. */
  maxAge: 86_400_000,
  /** How far the clocks of two instances may differ, either way. */
  skew: 60_000,
  maxTokenBytes: 65_536,
  /** A larger token is worth a warning: the client sends it back with every round. */
  warnTokenBytes: 8_192,
} as const
