// The identity of a flow and its position, in one round: read from the state, or new in the first round.
import { randomBytes } from 'node:crypto'
import { writeFlowState } from '../flow/flow-state.ts'
import type { Flow } from '../flow/carrier.ts'
import type { Capability } from '../flow/question.ts'
import type { SavedFlow } from '../flow/run.ts'
import type { Claims } from '../seal/claims.ts'
import { hasCapability } from './capabilities.ts'
import type { RequestInfo } from './request.ts'

/** Why an instance hands a flow over: it drains or is overloaded, or it has another version of the handler. */
export type DeferralReason = 'load' | 'version'

/** The id is created when it is first needed: many calls never need one. */
export class RoundFlow implements Flow {
  readonly startedAt: number
  readonly round: number
  readonly revision: string
  readonly deferrals: number
  readonly versionDeferrals: number
  readonly #capabilities: number
  readonly #newId: () => string
  #id: string | undefined

  /** `newId` makes the id of a new flow. */
  constructor(
    { revision, capabilities }: RequestInfo,
    claims: Claims | undefined,
    now: () => number,
    newId: () => string = newFlowId,
  ) {
    this.#newId = newId
    this.startedAt = claims?.startedAt ?? now()
    this.round = claims?.round ?? 0
    this.revision = claims?.revision ?? revision
    this.deferrals = claims?.deferrals ?? 0
    this.versionDeferrals = claims?.versionDeferrals ?? 0
    this.#capabilities = claims?.capabilities ?? capabilities
    this.#id = claims?.flowId
  }

  get id(): string {
    return (this.#id ??= this.#newId())
  }

  declared(capability: Capability): boolean {
    return hasCapability(this.#capabilities, capability)
  }

  /** The claims of the next round's state. `deferredFor` is why the flow is handed over, if it is. */
  next({ version, flowState, journal }: SavedFlow, deferredFor?: DeferralReason): Claims {
    return {
      startedAt: this.startedAt,
      flowId: this.id,
      round: this.round + 1,
      deferrals: this.deferrals + (deferredFor === 'load' ? 1 : 0),
      // In a row: a pass that ran starts from zero.
      versionDeferrals: deferredFor === 'version' ? this.versionDeferrals + 1 : 0,
      version,
      capabilities: this.#capabilities,
      revision: this.revision,
      carry: writeFlowState(flowState),
      journal: journal.text(),
    }
  }
}

/** Random bytes for many ids at once: the system call costs more than the bytes. */
const ID_BYTES = 16
let pool = Buffer.alloc(0)
let used = 0

function newFlowId(): string {
  if (used === pool.length) {
    pool = randomBytes(ID_BYTES * 256)
    used = 0
  }
  used += ID_BYTES
  return pool.toString('base64url', used - ID_BYTES, used)
}
