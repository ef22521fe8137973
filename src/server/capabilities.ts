// The capabilities of a client as bits. They are sealed with the flow, so that every pass sees the same.
import type { Capability } from '../flow/question.ts'
import { isObject } from '../protocol/json.ts'
import type { ClientCapabilities } from '../protocol/messages.ts'
import { TASKS_EXTENSION } from '../protocol/revisions/2026-07-28.ts'

const CAPABILITIES: readonly Capability[] = [
  // The position is the bit. Sealed states outlive a release, so append and never reorder.
  'elicitation.form',
  'elicitation.url',
  'sampling',
  'sampling.tools',
  'sampling.context',
  'roots',
  'tasks',
]

export function readCapabilities(declared: Record<string, unknown>): number {
  const { elicitation, sampling, roots, extensions } = declared
  let bits = 0
  if (isObject(elicitation)) {
    const url = isObject(elicitation['url'])
    if (url) bits |= bitOf('elicitation.url')
    // An empty object means forms: the revision that introduced elicitation had nothing else.
    if (isObject(elicitation['form']) || !url) bits |= bitOf('elicitation.form')
  }
  if (isObject(sampling)) {
    bits |= bitOf('sampling')
    if (isObject(sampling['tools'])) bits |= bitOf('sampling.tools')
    if (isObject(sampling['context'])) bits |= bitOf('sampling.context')
  }
  if (isObject(roots)) bits |= bitOf('roots')
  if (isObject(extensions) && isObject(extensions[TASKS_EXTENSION])) bits |= bitOf('tasks')
  return bits
}

/** What the bits stand for, as a client declares it. Nothing else that the client declared is in it. */
export function capabilitiesOf(bits: number): ClientCapabilities {
  const has = (capability: Capability): boolean => hasCapability(bits, capability)
  const form = has('elicitation.form')
  const url = has('elicitation.url')
  return {
    ...((form || url) && { elicitation: { ...(form && { form: {} }), ...(url && { url: {} }) } }),
    ...(has('sampling') && {
      sampling: { ...(has('sampling.tools') && { tools: {} }), ...(has('sampling.context') && { context: {} }) },
    }),
    ...(has('roots') && { roots: {} }),
  }
}

/** The bits of all of these. */
export function bitsOf(capabilities: readonly Capability[]): number {
  return capabilities.reduce((bits, capability) => bits | bitOf(capability), 0)
}

export function hasCapability(bits: number, capability: Capability): boolean {
  return (bits & bitOf(capability)) !== 0
}

function bitOf(capability: Capability): number {
  const position = CAPABILITIES.indexOf(capability)
  return position === -1 ? 0 : 1 << position
}
