// What an event token of this version says: later versions open it, and write the same.
import { expect, test } from 'vitest'
import { writeWaits, readWaits } from '../flow/flow-state.ts'
import { createSeal } from '../seal/seal.ts'
import { EventTokens } from './events.ts'

const MINTED_AT = 1_785_196_800_000
const KEYS = ['correct horse battery staple, and then some: é€😀']
const ADDRESS = { taskId: 'ab'.repeat(32), flowId: 'a flow', key: 'order>paid', dueAt: MINTED_AT + 3_600_000 }
const GOLDEN =
  'sg1.YK-pXW_S8v-63XDrse2UqPNvuMjiWXv9gBzSAMzwB3FoTWOSwIWvhyLzxqNnLDxHyS9gSMl09-jeHN_tqQ2DmA1Gyk7yXUI2WbDek8Hs93UX2jQGPdJZObgMen55pzkUZFeBV8NHht3g1YyencZhOWEpnU0h8JjRzVBwQWbRDnIV9x97hb5xwofLtRkRnWBqx7X4pUfGrPdfo_fc_AgDhA7xBWuK8XhGMlUuZ7wxSzbtVV_f_08R_5SRJjaRYPltcuXUOGRHX_jWmQKQQsjk_FrneCo55wbVVhAIlW-E62MI2f-fH2-xiATMxA'

function tokens(now = MINTED_AT): EventTokens {
  return new EventTokens(createSeal({ audience: 'deployer', keys: KEYS, now: () => now }))
}

test('a token of version 1 opens, years later too', async () => {
  const address = { ...ADDRESS, flowId: '' }
  expect(await tokens().open(GOLDEN)).toEqual(address)
  expect(await tokens(MINTED_AT + 9 * 365 * 86_400_000).open(GOLDEN)).toEqual(address)
})

test('a token opens to what it was minted for, with and without a deadline', async () => {
  expect(await tokens().open(tokens().mint(ADDRESS))).toEqual(ADDRESS)
  const endless = { ...ADDRESS, dueAt: Infinity }
  expect(await tokens().open(tokens().mint(endless))).toEqual(endless)
})

test('a codec that is asynchronous cannot make one', () => {
  const codec = { seal: async (text: string) => text, open: async (text: string) => text }
  const seal = createSeal({ audience: 'deployer', codec })
  expect(() => new EventTokens(seal).mint(ADDRESS)).toThrow(/`codec` is asynchronous/)
})

test('the token and the schema of an event are carried as text', () => {
  const waits = new Map([
    ['a', { dueAt: 5, event: { token: 'sg1.a', schema: { type: 'object' } } }],
    ['b', { dueAt: Infinity, event: { token: 'sg1.b' } }],
    ['c', { dueAt: 7, attempts: 2 }],
  ])
  expect(readWaits(JSON.parse(JSON.stringify(writeWaits(waits))))).toEqual(waits)
})
