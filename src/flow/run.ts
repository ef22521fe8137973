// Runs a target for a carrier. This is the only way from the server, a task or an older client's call into a pass.
import { INVALID_PARAMS, ProtocolError } from '../protocol/errors.ts'
import type { Carrier, Ending, Outcome, PassInput } from './carrier.ts'
import type { FlowState } from './flow-state.ts'
import { keepAnswers } from './flow-state.ts'
import type { Io } from './io.ts'
import { startPass } from './io.ts'
import { Journal } from './journal.ts'
import { Pass } from './pass.ts'
import type { Form } from './question.ts'

/** A handler that may take several rounds: a tool, a prompt or a resource. `Host` and `Request` are what its texts depend on. */
export interface FlowTarget<Host, Request> {
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI. */
  readonly target: string
  readonly version: string | undefined
  readonly timeoutMs: number | undefined
  readonly forms: ReadonlyMap<string, Form>
  readonly run: (args: unknown, io: Io) => unknown
  /** The JSON text of the result for the handler's value. */
  readonly resultText: (value: unknown, host: Host, request: Request) => string | Promise<string>
  /** The JSON text of a result that reports the failure. Throws a protocol error if no result can report it. */
  readonly failureText: (error: unknown, host: Host) => string
}

/**
 * Runs one pass of the target, and gives its outcome to the carrier. Resolves with what the carrier makes of it. One promise
 * for the whole pass: a handler that never waits is done before this returns.
 */
export function runTarget<T>(
  target: Pick<FlowTarget<never, never>, 'forms' | 'timeoutMs' | 'run'>,
  args: unknown,
  carrier: Carrier<T>,
): Promise<T> {
  const { host } = carrier
  const input: PassInput = {
    flow: carrier.flow,
    journal: carrier.journal,
    flowState: carrier.flowState,
    answers: carrier.answers,
    forms: target.forms,
    can: (capability) => carrier.can(capability),
    limits: { journalBytes: carrier.maxJournalBytes, passMs: target.timeoutMs ?? carrier.timeoutMs },
    logger: host.logger,
    progress: carrier.progress,
    log: carrier.log,
    wantsHandover: () => carrier.wantsHandover(),
    journalWriter: carrier.journalWriter,
    mayDetach: carrier.mayDetach,
    underway: carrier.underway,
    cancel: carrier.cancel,
    strict: host.strict,
    now: host.now,
  }
  return new Promise((resolve, reject) => {
    const finish = (outcome: Outcome): void => {
      try {
        resolve(takeOutcome(carrier, outcome))
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    }
    const pass = new Pass(input, finish)
    carrier.started?.(pass)
    startPass(pass, (io) => target.run(args, io))
  })
}

function takeOutcome<T>(carrier: Carrier<T>, outcome: Outcome): T | Promise<T> {
  switch (outcome.kind) {
    case 'done':
    case 'failed':
      return carrier.ended(outcome)
    case 'cancelled':
      return carrier.cancelled()
    case 'asks':
    case 'deferred':
    case 'detached':
      return carrier.suspended(outcome)
  }
}

/** The text of a flow's result. A value that has no text, because it is not JSON or does not match its schema, is a failure. */
export function endText<Host, Request>(
  target: FlowTarget<Host, Request>,
  outcome: Ending,
  host: Host,
  request: Request,
): string | Promise<string> {
  if (outcome.kind === 'failed') return target.failureText(outcome.error, host)
  try {
    const text = target.resultText(outcome.value, host, request)
    return typeof text === 'string' ? text : text.catch((error: unknown) => target.failureText(error, host))
  } catch (error) {
    return target.failureText(error, host)
  }
}

/** What a carrier kept of a flow, and the version of the handler that recorded it. */
export interface SavedFlow {
  readonly version: string | undefined
  readonly journal: Journal
  readonly flowState: FlowState
}

/**
 * What this version of the handler resumes from: the saved flow itself if it has the same version, and else its answers alone
 * (rule 11). Throws `VersionChanged` if another version recorded steps.
 */
export function resumable(
  { target, version }: Pick<FlowTarget<never, never>, 'target' | 'version'>,
  saved: SavedFlow,
): SavedFlow {
  if (saved.version === version) return saved
  if (saved.journal.hasEffects()) throw new VersionChanged(target, saved.version, version)
  return { version, journal: Journal.empty(), flowState: keepAnswers(saved.journal, saved.flowState) }
}

/** The flow has recorded steps under another version of its handler (-32602). */
export class VersionChanged extends ProtocolError {
  constructor(target: string, was: string | undefined, is: string | undefined) {
    super(
      INVALID_PARAMS,
      `"${target}": this call recorded steps under version ${was ?? '(none)'}, and version ${is ?? '(none)'} cannot resume it. Start the call again.`,
      { code: 'VERSION_CHANGED' },
    )
  }
}
