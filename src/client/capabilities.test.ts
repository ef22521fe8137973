import { expect, test } from 'vitest'
import type { Answerers } from './answers/answerers.ts'
import type { Capability } from './capabilities.ts'
import { capabilitiesOf, declaredCapabilities, declaredToLegacy } from './capabilities.ts'

const onElicit = () => ({ action: 'decline' }) as const
const onVisit = onElicit
const answer = () => ({ role: 'assistant', content: { type: 'text', text: '' }, model: 'm' }) as const
const onRoots = () => []

test.each<[string, Answerers, Capability[], object]>([
  ['nothing', {}, [], {}],
  ['forms', { onElicit }, [], { elicitation: { form: {} } }],
  ['pages', { onVisit }, [], { elicitation: { url: {} } }],
  ['both', { onElicit, onVisit }, [], { elicitation: { form: {}, url: {} } }],
  ['a model', { onSample: answer }, [], { sampling: {} }],
  ['a model, plainly', { onSample: { answer, tools: false } }, [], { sampling: {} }],
  ['a model with tools', { onSample: { answer, tools: true } }, [], { sampling: { tools: {} } }],
  ['a model with context', { onSample: { answer, context: true } }, [], { sampling: { context: {} } }],
  ['roots', { onRoots }, [], { roots: {} }],
  ['what is answered by hand', {}, ['elicitation.url', 'roots'], { elicitation: { url: {} }, roots: {} }],
  ['a part of sampling by hand', {}, ['sampling.tools'], { sampling: { tools: {} } }],
  ['answerers and hand together', { onElicit }, ['elicitation.url'], { elicitation: { form: {}, url: {} } }],
])('a client that answers %s declares just that', (_what, answerers, byHand, wire) => {
  expect(declaredCapabilities(capabilitiesOf(answerers, byHand))).toEqual(wire)
})

test('older servers are told beside that that the roots may change', () => {
  expect(declaredToLegacy({ sampling: {}, roots: {} })).toEqual({ sampling: {}, roots: { listChanged: true } })
  expect(declaredToLegacy({ sampling: {} })).toEqual({ sampling: {} })
})

test('a capability that does not exist is an error', () => {
  expect(() => capabilitiesOf({}, ['elicitation' as Capability])).toThrow('got "elicitation"')
})
