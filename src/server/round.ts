// One round of a flow that the client carries: opens the state, runs a pass, and answers with a result or a new state.
import { randomBytes } from 'node:crypto'
import type { Answers } from '../flow/answering.ts'
import type { Cancel } from '../flow/cancel.ts'
import type { Carry } from '../flow/carry.ts'
import { emptyCarry, readCarry, writeCarry } from '../flow/carry.ts'
import { Declined, FlowError } from '../flow/errors.ts'
import type { Io } from '../flow/io.ts'
import { Journal } from '../flow/journal.ts'
import type { Flow, Log, Outcome, Progress } from '../flow/pass.ts'
import type { Capability, Form } from '../flow/question.ts'
import { runPass } from '../flow/run.ts'
import { carryOver } from '../flow/upgrade.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, ProtocolError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { canonical, digest } from '../seal/canonical.ts'
import type { Binding, Claims } from '../seal/claims.ts'
import type { Seal } from '../seal/seal.ts'
import { InvalidState } from '../seal/seal.ts'
import { hasCapability } from './capabilities.ts'
import type { RequestInfo } from './request.ts'

/** What serving a round needs of its app. */
export interface RoundHost {
  readonly seal: Seal
  readonly logger: Logger
  readonly serverMeta: string
  readonly timeoutMs: number
  readonly strict: boolean
  readonly now: () => number
  /** A state was minted under a key that no other process has. */
  mintedEphemeral(overHttp: boolean): void
}

/** What may take several rounds, whatever its method. */
export interface Carried {
  readonly method: string
  /** The name of the tool or prompt, or the resource's URI. */
  readonly target: string
  readonly version: string | undefined
  readonly timeoutMs: number | undefined
  readonly forms: ReadonlyMap<string, Form>
  readonly run: (io: Io) => unknown
}

export interface RoundRequest {
  readonly info: RequestInfo
  /** As received; bound to the state. */
  readonly args: Record<string, unknown>
  readonly answers: Answers | undefined
  readonly state: unknown
  readonly principal: string | undefined
  readonly cancel: Cancel | undefined
  readonly progress: Progress | undefined
  readonly log: Log | undefined
  readonly overHttp: boolean
}

/** What a round came to: the handler's value, the text of an interim result, or nothing because nobody waits for it. */
export type RoundEnd = { value: unknown } | { interimText: string } | undefined

export async function serveRound(host: RoundHost, carried: Carried, request: RoundRequest): Promise<RoundEnd> {
  const { state } = request
  const resumed = state === undefined || state === null ? undefined : await resume(host, carried, request)
  const flow = new RoundFlow(request.info, resumed?.claims, host.now)
  const { capabilities } = request.info
  const outcome = await runPass(
    {
      flow,
      journal: resumed?.journal ?? Journal.empty(),
      carry: resumed?.carry ?? emptyCarry(),
      answers: request.answers,
      forms: carried.forms,
      can: (capability) => hasCapability(capabilities, capability),
      limits: { journalBytes: host.seal.maxPlaintextBytes, passMs: carried.timeoutMs ?? host.timeoutMs },
      logger: host.logger,
      progress: request.progress,
      log: request.log,
      cancel: request.cancel,
      strict: host.strict,
      now: host.now,
    },
    carried.run,
  )
  return conclude(host, carried, request, flow, outcome)
}

async function conclude(
  host: RoundHost,
  carried: Carried,
  request: RoundRequest,
  flow: RoundFlow,
  outcome: Outcome,
): Promise<RoundEnd> {
  switch (outcome.kind) {
    case 'done':
      return { value: outcome.value }
    case 'cancelled':
      return undefined
    case 'failed':
      throw outcome.error
    case 'asks':
    case 'deferred': {
      const { journal, carry } = outcome
      const claims = flow.next(carried.version, carry, journal, outcome.kind === 'deferred')
      const token = await host.seal.mint(claims, bindingOf(carried, request), () => journal.largest(3))
      if (host.seal.ephemeral) host.mintedEphemeral(request.overHttp)
      return { interimText: interimText(outcome, token, host.serverMeta) }
    }
  }
}

/** A flow's identity and standing in one round. Its id is made when something first needs it. */
class RoundFlow implements Flow {
  readonly startedAt: number
  readonly round: number
  readonly revision: string
  readonly #deferrals: number
  readonly #capabilities: number
  #id: string | undefined

  constructor({ revision, capabilities }: RequestInfo, claims: Claims | undefined, now: () => number) {
    this.startedAt = claims?.startedAt ?? now()
    this.round = claims?.round ?? 0
    this.revision = claims?.revision ?? revision
    this.#deferrals = claims?.deferrals ?? 0
    this.#capabilities = claims?.capabilities ?? capabilities
    this.#id = claims?.flowId
  }

  get id(): string {
    return (this.#id ??= newFlowId())
  }

  declared = (capability: Capability): boolean => hasCapability(this.#capabilities, capability)

  next(version: string | undefined, carry: Carry, journal: Journal, deferred: boolean): Claims {
    return {
      startedAt: this.startedAt,
      flowId: this.id,
      round: this.round + 1,
      deferrals: this.#deferrals + (deferred ? 1 : 0),
      version,
      capabilities: this.#capabilities,
      revision: this.revision,
      carry: writeCarry(carry),
      journal: journal.text(),
    }
  }
}

interface Resumed {
  claims: Claims
  journal: Journal
  carry: Carry
}

async function resume(host: RoundHost, carried: Carried, request: RoundRequest): Promise<Resumed> {
  const opening = host.seal.open(request.state, bindingOf(carried, request))
  const claims = opening instanceof Promise ? await opening : opening
  let journal: Journal
  let carry: Carry
  try {
    journal = Journal.read(claims.journal)
    carry = readCarry(claims.carry)
  } catch (cause) {
    host.logger.error('A requestState opened, but what it holds cannot be read.', { cause })
    throw new InvalidState(cause)
  }
  if (claims.version === carried.version) return { claims, journal, carry }
  if (journal.hasEffects()) throw versionChanged(carried, claims.version)
  return { claims, journal: Journal.empty(), carry: carryOver(journal, carry) }
}

function versionChanged({ target, version }: Carried, was: string | undefined): ProtocolError {
  return new ProtocolError(
    INVALID_PARAMS,
    `This call of "${target}" was begun under version ${was ?? '(none)'} and has done steps that version ${version ?? '(none)'} cannot go on from. Start it again.`,
    { code: 'VERSION_CHANGED' },
  )
}

function bindingOf({ method, target }: Carried, { args, principal }: RoundRequest): Binding {
  try {
    return { method, target, argumentsDigest: digest(canonical(args)), principal }
  } catch (cause) {
    // A number that JSON can write and JavaScript cannot hold, such as 1e999.
    throw new ProtocolError(INVALID_PARAMS, `Invalid arguments: ${cause instanceof Error ? cause.message : ''}`)
  }
}

function interimText(outcome: Outcome & { kind: 'asks' | 'deferred' }, token: string, serverMeta: string): string {
  const state = `"requestState":${JSON.stringify(token)},"_meta":${serverMeta}}`
  if (outcome.kind === 'deferred') return `{"resultType":"input_required",${state}`
  const requests: string[] = []
  for (const [key, text] of outcome.questions) requests.push(`${JSON.stringify(key)}:${text}`)
  return `{"resultType":"input_required","inputRequests":{${requests.join(',')}},${state}`
}

/** One draw of randomness for many flows: the system call is dearer than the bytes. */
const ID_BYTES = 16
let pool = Buffer.alloc(0)
let drawn = 0

function newFlowId(): string {
  if (drawn === pool.length) {
    pool = randomBytes(ID_BYTES * 256)
    drawn = 0
  }
  drawn += ID_BYTES
  return pool.toString('base64url', drawn - ID_BYTES, drawn)
}

/** How a failure is told: as a protocol error, or (`undefined`) as a result that the model reads. */
export function protocolErrorOf(error: unknown): ProtocolError | undefined {
  if (error instanceof ProtocolError) return error
  if (error instanceof Declined) return undefined
  if (error instanceof FlowError && error.code !== 'ASKED_TOO_OFTEN') {
    return new ProtocolError(INTERNAL_ERROR, error.message, { code: error.code })
  }
  return undefined
}
