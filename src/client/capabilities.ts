// The capabilities that the client declares: those of its answerers, and those of the option `can`.
import type { ClientCapabilities } from '../protocol/messages.ts'
import { shown } from '../protocol/text.ts'
import type { Answerers } from './answers/answerers.ts'
import { wrongOption } from './errors.ts'

const CAPABILITIES = [
  'elicitation.form',
  'elicitation.url',
  'sampling',
  'sampling.tools',
  'sampling.context',
  'roots',
] as const

/** What a client must be able to do for a question, as the protocol names it. */
export type Capability = (typeof CAPABILITIES)[number]

export function capabilitiesOf(answerers: Answerers, byHand: readonly Capability[]): ReadonlySet<Capability> {
  for (const name of byHand) {
    if (!CAPABILITIES.includes(name)) {
      throw wrongOption(`can: each capability must be one of ${CAPABILITIES.join(', ')}, got ${shown(name)}.`)
    }
  }
  const can = new Set(byHand)
  const { onElicit, onVisit, onSample, onRoots } = answerers
  if (onElicit !== undefined) can.add('elicitation.form')
  if (onVisit !== undefined) can.add('elicitation.url')
  if (onSample !== undefined) can.add('sampling')
  if (typeof onSample === 'object' && onSample.tools === true) can.add('sampling.tools')
  if (typeof onSample === 'object' && onSample.context === true) can.add('sampling.context')
  if (onRoots !== undefined) can.add('roots')
  // Both are parts of sampling.
  if (can.has('sampling.tools') || can.has('sampling.context')) can.add('sampling')
  return can
}

/** In the form of the protocol. */
export function declaredCapabilities(can: ReadonlySet<Capability>): ClientCapabilities {
  const elicits = can.has('elicitation.form') || can.has('elicitation.url')
  return {
    ...(elicits && {
      elicitation: { ...(can.has('elicitation.form') && { form: {} }), ...(can.has('elicitation.url') && { url: {} }) },
    }),
    ...(can.has('sampling') && {
      sampling: {
        ...(can.has('sampling.tools') && { tools: {} }),
        ...(can.has('sampling.context') && { context: {} }),
      },
    }),
    ...(can.has('roots') && { roots: {} }),
  }
}

/** Legacy servers ask for the roots once, so the client also declares that it reports changes. */
export function declaredToLegacy(capabilities: ClientCapabilities): ClientCapabilities {
  return capabilities.roots === undefined ? capabilities : { ...capabilities, roots: { listChanged: true } }
}
