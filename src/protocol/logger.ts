// The log of an operator, and the levels of the logs that go to clients.

/** What belongs to a log entry, by name: `tool`, `key`, `flow`, `round`, `task`, `principal`, `error`. Ids are digests. */
export type LogFields = Record<string, unknown>

/**
 * Where Rally writes its log. Structural, so `console` and pino fit as they are; docs/running.md adapts winston. A logger without
 * `debug` or `info` does not get those entries.
 */
export interface Logger {
  /** For somebody who looks for a fault. Optional. */
  debug?(message: string, fields?: LogFields): void
  /** What an operator may want to know. Optional. */
  info?(message: string, fields?: LogFields): void
  /** Something is wrong, and requests are still served. */
  warn(message: string, fields?: LogFields): void
  /** Something failed. */
  error(message: string, fields?: LogFields): void
}

/** The levels of Rally's log, from the least to the most severe. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** The levels of a `Logger`. */
export type LoggerLevel = (typeof LOG_LEVELS)[number]

/** A logger of pino takes the fields first, and prints the stack of an error that has the name `err`. */
interface PinoLike extends Record<LoggerLevel, (fields: LogFields, message: string) => void> {
  bindings(): unknown
}

/** True if it has what every logger must have. */
export function isLogger(given: unknown): given is Logger {
  const { warn, error } = (given ?? {}) as Partial<Logger>
  return typeof warn === 'function' && typeof error === 'function'
}

/** The logger as Rally calls it, whatever the order of its parameters, what it does with a `%`, and whether it throws. */
export function toLogger(logger: Logger): Logger {
  return guarded(isConsole(logger) ? consoleWriter(logger) : isPino(logger) ? pinoWriter(logger) : logger)
}

/** An entry that cannot be written must not fail a request. */
function guarded(logger: Logger): Logger {
  const write =
    (level: LoggerLevel): Logger['warn'] =>
    (message, ...fields) => {
      try {
        logger[level]?.(message, ...fields)
      } catch (error) {
        console.error('%s', `The logger failed. The entry: ${message}`, error)
      }
    }
  return {
    ...(logger.debug && { debug: write('debug') }),
    ...(logger.info && { info: write('info') }),
    warn: write('warn'),
    error: write('error'),
  }
}

function pinoWriter(logger: PinoLike): Logger {
  const write =
    (level: LoggerLevel) =>
    (message: string, { error, ...fields }: LogFields = {}): void =>
      logger[level](error === undefined ? fields : { ...fields, err: error }, message)
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** The `%` of a URI in a message must not format the fields. The output stream of the process may carry the protocol. */
function consoleWriter(given: Console): Logger {
  const write =
    (level: LoggerLevel): Logger['warn'] =>
    (message, ...fields) =>
      given[level]('%s', message, ...fields)
  const isGlobal = given === console
  return {
    debug: write(isGlobal ? 'warn' : 'debug'),
    info: write(isGlobal ? 'warn' : 'info'),
    warn: write('warn'),
    error: write('error'),
  }
}

/** The global one, or a `Console` that the author made. */
function isConsole(logger: object): logger is Console {
  return 'dirxml' in logger && 'table' in logger
}

function isPino(logger: unknown): logger is PinoLike {
  const { bindings, isLevelEnabled } = logger as { bindings?: unknown; isLevelEnabled?: unknown }
  return typeof bindings === 'function' && typeof isLevelEnabled === 'function'
}

/** From the least to the most severe. A client that asks for one level receives that level and everything above it. */
export const LOGGING_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const

export type LoggingLevel = (typeof LOGGING_LEVELS)[number]
