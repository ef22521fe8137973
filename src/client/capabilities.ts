// What the client declares: what its answerers can answer, and what its owner answers by hand.
import type { ClientCapabilities } from '../protocol/messages.ts'
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

export type Capability = (typeof CAPABILITIES)[number]

export function capabilitiesOf(answerers: Answerers, byHand: readonly Capability[]): ReadonlySet<Capability> {
  for (const name of byHand) {
    if (!CAPABILITIES.includes(name)) {
      throw wrongOption(`can: ${JSON.stringify(name)} is no capability; there are ${CAPABILITIES.join(', ')}.`)
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
  // Each of these is a part of sampling.
  if (can.has('sampling.tools') || can.has('sampling.context')) can.add('sampling')
  return can
}

/** In the wire's shape. */
export function declared(can: ReadonlySet<Capability>): ClientCapabilities {
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

/** As older servers are told: they ask for the roots once, and whoever lists them says when they change. */
export function declaredToOlder(capabilities: ClientCapabilities): ClientCapabilities {
  return capabilities.roots === undefined ? capabilities : { ...capabilities, roots: { listChanged: true } }
}
