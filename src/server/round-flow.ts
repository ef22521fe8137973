// Who a flow is and how far it has come, in one round of it: what the state says, or the beginning.
import { randomBytes } from 'node:crypto'
import type { FlowState } from '../flow/flow-state.ts'
import { writeFlowState } from '../flow/flow-state.ts'
import type { Journal } from '../flow/journal.ts'
import type { Flow } from '../flow/carrier.ts'
import type { Capability } from '../flow/question.ts'
import type { Claims } from '../seal/claims.ts'
import { hasCapability } from './capabilities.ts'
import type { RequestInfo } from './request.ts'

/** Its id is made when something first needs it. */
export class RoundFlow implements Flow {
  readonly startedAt: number
  readonly round: number
  readonly revision: string
  readonly deferrals: number
  readonly #capabilities: number
  #id: string | undefined

  constructor({ revision, capabilities }: RequestInfo, claims: Claims | undefined, now: () => number) {
    this.startedAt = claims?.startedAt ?? now()
    this.round = claims?.round ?? 0
    this.revision = claims?.revision ?? revision
    this.deferrals = claims?.deferrals ?? 0
    this.#capabilities = claims?.capabilities ?? capabilities
    this.#id = claims?.flowId
  }

  get id(): string {
    return (this.#id ??= newFlowId())
  }

  declared = (capability: Capability): boolean => hasCapability(this.#capabilities, capability)

  next(version: string | undefined, carry: FlowState, journal: Journal, deferred: boolean): Claims {
    return {
      startedAt: this.startedAt,
      flowId: this.id,
      round: this.round + 1,
      deferrals: this.deferrals + (deferred ? 1 : 0),
      version,
      capabilities: this.#capabilities,
      revision: this.revision,
      carry: writeFlowState(carry),
      journal: journal.text(),
    }
  }
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
