// The layout that instances of different versions exchange in sealed states and task rows. It only ever grows at the end.
import { expect, test } from 'vitest'
import type { FlowState } from './flow-state.ts'
import { readFlowState, writeFlowState } from './flow-state.ts'

const client = { name: 'desk', version: '2', capabilities: {}, extensions: {}, revision: '2026-07-28' }
const opened = { open: new Map([['confirm', { pin: 'a-pin', asked: 1 }]]), held: new Map() }
const none = { open: new Map(), held: new Map() }

const layouts: readonly [string, FlowState, unknown][] = [
  ['an open question', opened, [[['confirm', 'a-pin', 1]], []]],
  [
    'answers that are held',
    {
      open: new Map(),
      held: new Map([
        ['yes', { pin: 'p', asked: 2, answer: { action: 'accept' as const, value: { ok: true } } }],
        ['no', { pin: 'q', asked: 1, answer: { action: 'decline' as const, value: undefined } }],
        ['raw', { pin: 'r', asked: 1, answer: { raw: { action: 'cancel' } }, at: 5 }],
      ]),
    },
    [
      [],
      [
        ['yes', 'p', 2, 'accept', { ok: true }],
        ['no', 'q', 1, 'decline'],
        ['raw', 'r', 1, 'raw', { action: 'cancel' }, 5],
      ],
    ],
  ],
  ['a round by hand without a state', { ...none, byHand: {} }, [[], [], []]],
  ['a round by hand', { ...none, byHand: { state: { n: 1 } } }, [[], [], [{ n: 1 }]]],
  ['what the client said of itself', { ...none, client }, [[], [], null, client]],
  [
    'times to wait for',
    {
      ...none,
      waits: new Map([
        ['nap', { dueAt: 7 }],
        ['pay', { dueAt: 8, attempts: 2 }],
      ]),
    },
    [
      [],
      [],
      null,
      null,
      [
        ['nap', 7],
        ['pay', 8, 2],
      ],
    ],
  ],
  ['a trace', { ...none, trace: '00-aa-bb-01' }, [[], [], null, null, [], '00-aa-bb-01']],
]

test.each(layouts)('%s', (_name, state, json) => {
  expect(JSON.parse(JSON.stringify(writeFlowState(state)))).toEqual(json)
  expect(readFlowState(json)).toEqual(state)
})
