// Runs a target for a carrier. This is the only way from the server, a task or an older client's call into a pass.
import { INTERNAL_ERROR, INVALID_PARAMS, isPublicProtocolError, ProtocolError } from '../protocol/errors.ts'
import { observeAnswers } from './by-hand.ts'
import type { CallSource } from './caller.ts'
import type { Carrier, Ending, Outcome, PassHost, PassInput, PassTarget } from './carrier.ts'
import { flowDigest } from './derive.ts'
import type { FlowState } from './flow-state.ts'
import { keepAnswers } from './flow-state.ts'
import type { Io } from './io.ts'
import { startPass } from './io.ts'
import type { FailurePlace, TargetName } from './failure-log.ts'
import { logFailure, logUnexpected, publicError } from './failure-log.ts'
import { Journal } from './journal.ts'
import type { FlowObserver, Observers } from './observer.ts'
import { Pass } from './pass.ts'
import type { Form } from './question.ts'

/** A handler that may take several rounds: a tool, a prompt or a resource. `Host` and `Request` are what its texts depend on. */
export interface FlowTarget<Host, Request> extends TargetName {
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
export function runTarget<T>(target: RunTarget, args: unknown, carrier: Carrier<T>): Promise<T> {
  const { observers = carrier.host.observers } = carrier
  if (observers !== undefined) return runObserved(observers, target, args, carrier)
  return runPass(target, args, carrier, undefined)
}

type RunTarget = Pick<FlowTarget<never, never>, 'method' | 'target' | 'forms' | 'timeoutMs' | 'run'> & PassTarget

function runObserved<T>(observers: Observers, target: RunTarget, args: unknown, carrier: Carrier<T>): Promise<T> {
  const { flow, kind, flowState, source } = carrier
  const observed = observers.flow({
    method: target.method,
    target: target.target,
    // Only observers of the app read it, and not the history of a task. No getter: V8 would keep all that it can reach until the next
    // major collection.
    flow: carrier.host.observers === undefined ? '' : flowDigest(flow.id),
    round: flow.round,
    carrier: kind,
    caller: source.caller,
    trace: flowState.trace,
  })
  return observed.pass.run(() => {
    observers.sealTrace(flowState)
    observeAnswers(flowState, carrier.answers, observed)
    return runPass(target, args, carrier, observed)
  })
}

/** Tells the observers how the pass ended, and what the flow waits for. */
function reportOutcome(carrier: Carrier<unknown>, outcome: Outcome, observed: FlowObserver): void {
  const { kind } = outcome
  observed.leaveOpen()
  if (kind === 'asks') {
    const wait = observed.wait({ for: 'answers', keys: [...outcome.questions.keys()], dueAt: outcome.dueAt })
    if (carrier.holdWait === undefined) wait.end({ outcome: 'released' })
    else carrier.holdWait(wait)
  }
  if ((kind === 'asks' || kind === 'waiting') && outcome.events !== undefined) {
    observed.wait({ for: 'event', keys: outcome.events, dueAt: outcome.dueAt }).end({ outcome: 'released' })
  }
  observed.pass.end(kind === 'failed' ? { outcome: kind, error: outcome.error } : { outcome: kind })
}

function runPass<T>(
  target: RunTarget,
  args: unknown,
  carrier: Carrier<T>,
  observed: FlowObserver | undefined,
): Promise<T> {
  const { host } = carrier
  const input: PassInput = {
    target,
    flow: carrier.flow,
    journal: carrier.journal,
    flowState: carrier.flowState,
    source: carrier.source,
    answers: carrier.answers,
    receivedAt: carrier.receivedAt,
    forms: target.forms,
    can: (capability) => carrier.can(capability),
    limits: { journalBytes: carrier.maxJournalBytes, passMs: target.timeoutMs ?? carrier.timeoutMs },
    logger: host.logger,
    outages: host.outages,
    onError: host.onError,
    progress: carrier.progress,
    log: carrier.log,
    waiting: carrier.waiting,
    steps: host.steps,
    wantsHandover: () => carrier.wantsHandover(),
    journalWriter: carrier.journalWriter,
    events: carrier.events,
    mayDetach: carrier.mayDetach,
    hasStore: carrier.hasStore,
    underway: carrier.underway,
    cancel: carrier.cancel,
    strict: host.strict,
    now: host.now,
    observed,
  }
  return new Promise((resolve, reject) => {
    const finish = (outcome: Outcome): void => {
      if (observed !== undefined) reportOutcome(carrier, outcome, observed)
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
    case 'waiting':
    case 'deferred':
    case 'detached':
      return carrier.suspended(outcome)
  }
}

/** The carrier of a flow that has ended, as its texts and logs need it. */
export interface EndedFlow<Host> {
  readonly host: Host
  readonly flow: FailurePlace['flow']
  readonly source: CallSource | undefined
}

/** The text of a flow's result. A value that has no text, because it is not JSON or does not match its schema, is a failure. */
export function endText<Host extends PassHost, Request>(
  target: FlowTarget<Host, Request>,
  outcome: Ending,
  ended: EndedFlow<Host>,
  request: Request,
): string | Promise<string> {
  if (outcome.kind === 'failed') return failureText(target, outcome.error, ended, outcome.key)
  try {
    const text = target.resultText(outcome.value, ended.host, request)
    return typeof text === 'string' ? text : text.catch((error: unknown) => unwritable(target, error, ended))
  } catch (error) {
    return unwritable(target, error, ended)
  }
}

/** The text of a result that reports the failure, which it logs. `key` is the key of the io call that failed. */
export function failureText<Host extends PassHost>(
  target: FlowTarget<Host, never>,
  error: unknown,
  ended: EndedFlow<Host>,
  key?: string,
): string {
  const place = placeOf(target, ended)
  logFailure(place, error, key)
  return target.failureText(ended.host.showErrors ? error : publicError(error, place, key), ended.host)
}

function placeOf(target: TargetName, { host, flow, source }: EndedFlow<PassHost>): FailurePlace {
  const { logger, onError } = host
  return { target, flow, caller: source?.caller, logger, onError }
}

/** The handler returned a value that cannot be its result: its mistake, except if the error says what the caller did wrong. */
function unwritable<Host extends PassHost>(
  target: FlowTarget<Host, never>,
  error: unknown,
  ended: EndedFlow<Host>,
): string {
  const { host } = ended
  const place = placeOf(target, ended)
  const isAnswer = isPublicProtocolError(error) && error.rpcCode !== INTERNAL_ERROR
  if (!isAnswer) logUnexpected(place, error)
  return target.failureText(host.showErrors ? error : publicError(error, place), host)
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
      `"${target}": this call recorded steps under version ${was ?? '(none)'}, and version ${is ?? '(none)'} cannot resume it. Send it to an instance with the first version, or start the call again.`,
      { code: 'VERSION_CHANGED' },
    )
  }
}
