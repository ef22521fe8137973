import { expect, test } from 'vitest'
import { TASKS_EXTENSION } from '../protocol/revisions/2026-07-28.ts'
import type { Capability } from '../flow/question.ts'
import { hasCapability, readCapabilities } from './capabilities.ts'

const ALL: readonly Capability[] = [
  'elicitation.form',
  'elicitation.url',
  'sampling',
  'sampling.tools',
  'sampling.context',
  'roots',
  'tasks',
]

test.each([
  [{}, []],
  [{ elicitation: {} }, ['elicitation.form']],
  [{ elicitation: { url: {} } }, ['elicitation.url']],
  [{ elicitation: { form: {}, url: {} } }, ['elicitation.form', 'elicitation.url']],
  [{ sampling: { tools: {}, context: {} } }, ['sampling', 'sampling.tools', 'sampling.context']],
  [{ roots: {} }, ['roots']],
  [{ extensions: { [TASKS_EXTENSION]: {} } }, ['tasks']],
  [{ elicitation: [], sampling: true, roots: 'yes', extensions: { [TASKS_EXTENSION]: [] } }, []],
  [{ elicitation: { form: true, url: [] } }, ['elicitation.form']],
])('%j declares %j', (declared, known) => {
  const bits = readCapabilities(declared)
  expect(ALL.filter((capability) => hasCapability(bits, capability))).toEqual(known)
})
