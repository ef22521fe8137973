// Values that are the same in every pass: hashes of the flow's secret id and a key.
import { hash, randomBytes } from 'node:crypto'

export function idempotencyKey(flowId: string, key: string): string {
  return derive(flowId, 'step', key, 'base64url').slice(0, 22)
}

export function visitToken(flowId: string, key: string): string {
  return derive(flowId, 'visit', key, 'base64url').slice(0, 22)
}

/** Names a flow in logs. The id itself is a secret. */
export function flowDigest(flowId: string): string {
  return derive(flowId, 'log', '', 'base64url').slice(0, 11)
}

/** Names a failure in logs, and to callers who may not read more. The same on every replay. */
export function failureReference(flowId: string, key = ''): string {
  return derive(flowId, 'failure', key, 'base64url').slice(0, 11)
}

/** The same outside of a flow, where nothing is replayed. */
export function newReference(): string {
  return randomBytes(9).toString('base64url').slice(0, 11)
}

/** A number in [0, 1) with 52 random bits. */
export function derivedRandom(flowId: string, key: string): number {
  return Number.parseInt(derive(flowId, 'random', key, 'hex').slice(0, 13), 16) / 2 ** 52
}

/** A version 4 UUID: a hash of a random secret looks like random bits. */
export function derivedUuid(flowId: string, key: string): string {
  const hex = derive(flowId, 'uuid', key, 'hex')
  const variant = '89ab'[Number.parseInt(hex.charAt(16), 16) & 3]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function derive(flowId: string, purpose: string, key: string, encoding: 'hex' | 'base64url'): string {
  return hash('sha256', `${flowId}\0${purpose}\0${key}`, encoding)
}
