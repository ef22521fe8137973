// What a target is, what counts as a finding, and what every target watches for.
import { RallyError } from 'mcp-rally'
import type { Logger } from 'mcp-rally'
import type { Json } from './json.ts'
import type { Random } from './random.ts'

export type FindingKind =
  /** The process ended. */
  | 'crash'
  /** An input was not done within its time. */
  | 'hang'
  /** An input took the processor for too long. */
  | 'slow'
  /** A promise was rejected, or an exception thrown, and nobody caught it. */
  | 'uncaught'
  /** The code under test failed in a way that it does not document. */
  | 'internal'
  /** Text for the other side shows a stack, a path, a driver's words or a secret. */
  | 'leak'
  /** A message is not what the protocol allows. */
  | 'invalid'
  /** Something was accepted that nobody has sealed for this use. */
  | 'forgery'
  /** Two implementations of one interface differ. */
  | 'differ'
  /** A prototype that all objects share was changed. */
  | 'pollution'
  /** Memory was not given back. */
  | 'memory'

export class Finding extends Error {
  readonly kind: FindingKind
  /** The same for findings that are likely one fault. */
  readonly key: string

  /** `what` should say the same for the same fault; `details` are those of this input. */
  constructor(kind: FindingKind, what: string, details = '') {
    super(details === '' ? what : `${what}: ${details}`)
    this.kind = kind
    const [first = ''] = what.split('\n    at ')
    this.key = `${kind}: ${first.replaceAll(/"[^"]*"|[\d.]+|[\w-]{20,}/g, '_').slice(0, 160)}`
  }
}

/** `Input` is plain JSON, so that it can be kept in a file and made smaller. */
export interface Target<Input = Json> {
  readonly name: string
  /** Runs only where it is named. Default false. */
  readonly isDrill?: boolean
  /** Bytes that an open target may keep by its documented limits, beyond what it needs at first. Default 24 MiB. */
  readonly keepsBytes?: number
  /** Milliseconds for one input. Default 5 000. */
  readonly limitMs?: number
  /** Milliseconds of the processor for one input. Default 1 500. */
  readonly mostCpuMs?: number
  /** A valid input, or nearly. */
  generate(random: Random): Input
  /** A changed copy. `other` is where pieces may be taken from. */
  mutate(random: Random, input: Input, other: Input): Input
  open(watch: Watch): Promise<Running<Input>>
}

export interface Running<Input = Json> {
  /** Returns words for how it went. An input with a word, or two in a row, that are new is kept, and mutated further. */
  run(input: Input): Promise<readonly string[]>
  close(): Promise<void>
}

/** The inputs of each target have a type of their own; the harness sees only JSON. */
export function target<Input>(described: Target<Input>): Target {
  return described as unknown as Target
}

/** For a target that mostly waits: so many of its inputs are one, and run at the same time. */
export function sideBySide<Input>(count: number, each: Target<Input>): Target {
  return target<Input[]>({
    ...each,
    generate: (random) => random.list(count, count, () => each.generate(random)),
    mutate: (random, inputs, others) =>
      inputs.map((input) => (random.chance(0.5) ? input : each.mutate(random, input, random.pick(others)))),
    async open(watch) {
      const running = await each.open(watch)
      const run = async (inputs: Input[]): Promise<string[]> =>
        (await Promise.all(inputs.map((input) => running.run(input)))).flat()
      return { run, close: () => running.close() }
    },
  })
}

const INTERNALS = [
  /\bat (?:async |new )?[\w.$<>]+ \((?:file:|node:|\/)/,
  /\b(?:node_modules|node:internal|libsql|better-sqlite)/,
  /[\w-]\.(?:m?js|ts):\d+/,
  /\bSQLITE_|\bSqliteError|no such (?:table|column)|UNIQUE constraint/,
  /Cannot read propert|is not a function|is not iterable|Maximum call stack|Unexpected token|\[object Object\]/,
]

/** Collects what goes wrong while an input runs. */
export class Watch {
  readonly #findings: Finding[] = []
  readonly #secrets = new Set<string>()

  /** For apps: errors that are not documented ones are findings. */
  readonly logger: Logger = {
    warn: () => {},
    error: (message, details = {}) => {
      const error = details['error'] ?? details['cause']
      if (!(error instanceof RallyError)) this.report('internal', `${message} ${stackOf(error)}`)
    },
  }

  report(kind: FindingKind, what: string, details = ''): void {
    this.#findings.push(new Finding(kind, what, details))
  }

  add(error: unknown): void {
    this.#findings.push(error instanceof Finding ? error : new Finding('internal', stackOf(error)))
  }

  /** What was found since the last time. */
  take(): Finding[] {
    return this.#findings.splice(0)
  }

  /** No text for the other side may hold it from now on. The last thousand are known. */
  keepSecret(secret: string): void {
    this.#secrets.add(secret)
    const [oldest] = this.#secrets
    if (this.#secrets.size > 1_000 && oldest !== undefined) this.#secrets.delete(oldest)
  }

  /** Checks text that goes to the other side. `sent` is what it said itself, which may be repeated to it. */
  checkLeaks(text: string, sent = ''): void {
    for (const pattern of INTERNALS) {
      const [found] = pattern.exec(text) ?? []
      if (found !== undefined && !sent.includes(found)) this.report('leak', `Shows ${pattern.source}`, clipped(text))
    }
    for (const secret of this.#secrets) {
      if (text.includes(secret) && !sent.includes(secret)) this.report('leak', 'Shows a secret', clipped(text))
    }
  }
}

export function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return `thrown: ${String(error)}`
  const cause = error.cause === undefined ? '' : `\n  cause: ${stackOf(error.cause)}`
  return (error.stack ?? error.message) + cause
}

export function clipped(text: string, most = 600): string {
  return text.length > most ? `${text.slice(0, most - 150)} ... ${text.slice(-150)}` : text
}
