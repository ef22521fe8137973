// The payload of a requestState: how far a flow has come.

import { isAnything, isCount, isText, isTextOrNull, type PayloadCodec } from './envelope.ts'

/** What the flow engine puts in and gets back. The numbers are whole and not negative. */
export interface Claims {
  /** When the flow began, in milliseconds. */
  readonly startedAt: number
  readonly flowId: string
  readonly round: number
  /** How often an instance that drains or is overloaded has handed the flow over. */
  readonly deferrals: number
  /** How many instances in a row had another version of the tool. Default: none. */
  readonly versionDeferrals?: number | undefined
  /** The version of the tool, if it declares one. */
  readonly version: string | undefined
  /** What the client declared in the first round, as bits. */
  readonly capabilities: number
  readonly revision: string
  /** A JSON value of the engine: open questions and answers that no question has used yet. */
  readonly carry: unknown
  /** A JSON text of the engine, sealed unchanged. */
  readonly journal: string
}

type ClaimFields = [
  round: number,
  deferrals: number,
  version: string | null,
  capabilities: number,
  revision: string,
  carry: unknown,
]

/**
 * Both counts of deferrals share one field, so that instances of an earlier release, which know one count only, can open the
 * state while a fleet is upgraded. To them the flow was handed over often.
 */
const VERSION_DEFERRAL = 2 ** 20

export const requestState: PayloadCodec<Claims, ClaimFields> = {
  purpose: 'requestState',
  name: 'requestState',
  tests: [isCount, isCount, isTextOrNull, isCount, isText, isAnything],
  write: (claims) => {
    const { startedAt, flowId, round, version = null, capabilities, revision, carry, journal } = claims
    const fields: ClaimFields = [round, writeDeferrals(claims), version, capabilities, revision, carry]
    return { id: flowId, startedAt, fields, text: journal }
  },
  read: ({ id, startedAt, fields: [round, deferrals, version, capabilities, revision, carry], text }) => ({
    startedAt,
    flowId: id,
    round,
    deferrals: deferrals % VERSION_DEFERRAL,
    versionDeferrals: Math.floor(deferrals / VERSION_DEFERRAL) || undefined,
    version: version ?? undefined,
    capabilities,
    revision,
    carry,
    journal: text,
  }),
}

function writeDeferrals({ deferrals, versionDeferrals = 0 }: Pick<Claims, 'deferrals' | 'versionDeferrals'>): number {
  return deferrals + versionDeferrals * VERSION_DEFERRAL
}
