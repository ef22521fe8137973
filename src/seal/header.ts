// The header of a sealed state: a compact JSON array with fixed positions, each of them checked when it is read, because
// a codec of the user's may give back anything.

import { SealError } from './seal-error.ts'

export type Header = [
  layout: number,
  startedAt: number,
  issuedAt: number,
  expiresAt: number,
  audience: string,
  method: string,
  target: string,
  argumentsDigest: string,
  principalDigest: string,
  flowId: string,
  round: number,
  deferrals: number,
  version: string | null,
  capabilities: number,
  revision: string,
  carry: unknown,
]

/** A change to the positions is a new layout, and this one stays readable for as long as its states may live. */
export const layout = 1

export function parseHeader(text: string): Header {
  let header: unknown
  try {
    header = JSON.parse(text)
  } catch {
    // Without its cause: the parser quotes the text.
    throw new SealError('the header is not JSON')
  }
  if (!Array.isArray(header)) throw new SealError('the header is not an array')
  if (header[0] !== layout) throw new SealError('the header has a layout that this version does not know')
  if (header.length !== positions.length) throw new SealError(`the header has ${header.length} positions`)
  if (!isHeader(header)) throw new SealError(`the header is wrong at position ${firstWrong(header)}`)
  return header
}

type Test = (value: unknown) => boolean

const isCount: Test = (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
const isText: Test = (value) => typeof value === 'string'
const isTextOrNull: Test = (value) => value === null || typeof value === 'string'
const isAnything: Test = () => true

/** In the order of `Header`. */
const positions: readonly Test[] = [
  isCount, // layout
  isCount, // startedAt
  isCount, // issuedAt
  isCount, // expiresAt
  isText, // audience
  isText, // method
  isText, // target
  isText, // argumentsDigest
  isText, // principalDigest
  isText, // flowId
  isCount, // round
  isCount, // deferrals
  isTextOrNull, // version
  isCount, // capabilities
  isText, // revision
  isAnything, // carry
]

function isHeader(header: unknown[]): header is Header {
  return firstWrong(header) < 0
}

function firstWrong(header: unknown[]): number {
  return positions.findIndex((fits, position) => !fits(header[position]))
}
