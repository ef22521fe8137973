// The payload of a requestState: how far a flow has come.

import { isAnything, isCount, isText, isTextOrNull, type PayloadCodec } from './envelope.ts'

/** What the flow engine puts in and gets back. The numbers are whole and not negative. */
export interface Claims {
  /** When the flow began, in milliseconds. */
  readonly startedAt: number
  readonly flowId: string
  readonly round: number
  readonly deferrals: number
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

export const requestState: PayloadCodec<Claims, ClaimFields> = {
  purpose: 'requestState',
  name: 'requestState',
  tests: [isCount, isCount, isTextOrNull, isCount, isText, isAnything],
  write: ({ startedAt, flowId, round, deferrals, version = null, capabilities, revision, carry, journal }) => ({
    id: flowId,
    startedAt,
    fields: [round, deferrals, version, capabilities, revision, carry],
    text: journal,
  }),
  read: ({ id, startedAt, fields: [round, deferrals, version, capabilities, revision, carry], text }) => ({
    startedAt,
    flowId: id,
    round,
    deferrals,
    version: version ?? undefined,
    capabilities,
    revision,
    carry,
    journal: text,
  }),
}
