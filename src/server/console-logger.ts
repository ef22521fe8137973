// The default log, on the error stream: with stdio the other stream carries the protocol. JSON lines in production, lines for people
// on a terminal and in development. A log entry never fails, and never spoofs another one.
import { inspect } from 'node:util'
import type { LogFields, Logger, LoggerLevel } from '../protocol/logger.ts'
import { LOG_LEVELS } from '../protocol/logger.ts'

export interface ConsoleLoggerOptions {
  /** The lowest level that is written. */
  readonly level: LoggerLevel
  readonly isJson: boolean
  /** Writes one entry. Default: to the console's error stream. */
  readonly write?: (line: string) => void
  readonly now?: () => Date
}

/** What the process says about where the log goes. */
export function defaultLogOptions(level: LoggerLevel | undefined): ConsoleLoggerOptions {
  const isProduction = process.env['NODE_ENV'] === 'production'
  return { level: level ?? (isProduction ? 'info' : 'warn'), isJson: isProduction && !isOnTerminal() }
}

/** Some runtimes have no such stream. */
function isOnTerminal(): boolean {
  const { stderr } = process as { stderr?: { isTTY?: boolean } }
  return stderr?.isTTY === true
}

export function consoleLogger({
  level: lowest,
  isJson,
  write = print,
  now = () => new Date(),
}: ConsoleLoggerOptions): Logger {
  const at = (level: LoggerLevel): Logger['warn'] => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(lowest)) return () => {}
    const lineOf = isJson ? jsonLine : readableLine
    return (message, fields = {}) => write(lineOf({ time: now(), level, message, fields }))
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

interface LogEntry {
  readonly time: Date
  readonly level: LoggerLevel
  readonly message: string
  readonly fields: LogFields
}

function jsonLine({ time, level, message, fields }: LogEntry): string {
  const entry = { ...fields, time: time.toISOString(), level, message }
  try {
    return JSON.stringify(entry, jsonValue)
  } catch {
    // Such as a cycle.
    return JSON.stringify({ time: entry.time, level, message, fields: inspect(fields) })
  }
}

/** JSON has nothing for errors and large numbers. */
function jsonValue(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (!(value instanceof Error)) return value
  const { name, message, stack, cause } = value
  const code = 'code' in value ? value.code : undefined
  const errors: unknown = value instanceof AggregateError ? value.errors : undefined
  return { name, message, code, stack, cause: cause instanceof Error ? cause : undefined, errors }
}

/** `12:04:31 ERROR Tool "pay": failed. key="charge" flow="x1"`, and the stack of an error below it. */
function readableLine({ time, level, message, fields: { error, ...fields } }: LogEntry): string {
  const shown = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${inspect(value, { breakLength: Infinity, depth: 4 })}`)
  const line = `${time.toISOString().slice(11, 19)} ${level.toUpperCase().padEnd(5)} ${message}${shown.join('')}`
  const below = error === undefined ? '' : `\n${printable(inspect(error)).replaceAll(/^/gm, '    ')}`
  return `${printable(line).replaceAll('\n', ' ')}${below}`
}

/** Without characters that would move the cursor or colour a terminal. */
function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, ' ')
}

function print(line: string): void {
  console.error(line)
}
