import { describe, expect, test } from 'vitest'
import { negotiated } from '../../protocol/revisions/index.ts'
import type { PayloadCodec } from '../../seal/envelope.ts'
import { bindTo } from '../../seal/envelope.ts'
import { InvalidState } from '../../seal/errors.ts'
import { createSeal } from '../../seal/seal.ts'
import { EventIds } from './event-position.ts'
import { Session } from '../session.ts'
import type { CallState } from './state.ts'
import { CallStates, stateIn, withoutState, withState } from './state.ts'

const KEY = 'modelcontextprotocol.io/state/request/'
const NOW = 1_800_000_000_000

const seal = createSeal({ audience: 'here', keys: ['a secret of these tests, long enough'], now: () => NOW })
const states = new CallStates(seal)
const eventIds = new EventIds(seal)

function sessionOf(id: string): Session {
  const revision = negotiated('2025-11-25')
  return new Session({ id, revision, capabilities: 5, carriesState: true, clientName: '', clientVersion: '' })
}

const session = sessionOf('one')

const state: CallState = {
  id: 7,
  method: 'tools/call',
  params: { name: 'deploy', arguments: { env: 'x' }, _meta: { progressToken: 'p' } },
  level: 'warning',
  channel: 'channel',
  segment: 3,
  askId: 'ask-1',
  key: 'confirm',
  answers: { first: { action: 'accept', content: { a: 1 } } },
  remaining: [{ key: 'next', request: { method: 'roots/list' }, isVisit: false }],
  visits: ['page'],
  flow: { flowId: 'flow', startedAt: NOW, round: 2, version: '1', carry: [[], []], journal: '[]' },
}

const minted = (): string | Promise<string> => states.mint(state, session, 'ada', () => [])

describe('What a client carries', () => {
  test('comes back as it was', async () => {
    expect(await states.open(await minted(), session, 'ada')).toEqual(state)
  })

  test.each([
    ['another session', sessionOf('other'), 'ada'],
    ['another principal', session, 'bob'],
    ['nobody', session, undefined],
  ])('does not open for %s', async (_what, other, principal) => {
    await expect(states.open(await minted(), other, principal)).rejects.toThrow(InvalidState)
  })

  test('does not open in an unknown layout', async () => {
    const call = { ...state, flow: undefined }
    const inLayout = (layout: number): PayloadCodec<undefined, unknown[]> => ({
      purpose: 'serverRequest',
      name: 'call state',
      tests: [],
      write: () => ({ id: 'flow', startedAt: NOW, fields: [layout, 2, '1', [[], []], call], text: '[]' }),
      read: () => undefined,
    })
    const sealed = (layout: number): string | Promise<string> =>
      seal.for(inLayout(layout)).mint(undefined, bindTo('serverRequest', 'one', 'ada'))
    expect(await states.open(await sealed(1), session, 'ada')).toEqual(state)
    await expect(states.open(await sealed(2), session, 'ada')).rejects.toThrow(InvalidState)
  })
})

describe('The id of an event', () => {
  const position = { channel: 'channel', number: 1999 }

  test('comes back as a position', async () => {
    expect(await eventIds.open(await eventIds.mint(position, session, 'ada'), session, 'ada')).toEqual(position)
  })

  test.each([
    ['another session', sessionOf('other'), 'ada'],
    ['another principal', session, 'bob'],
    ['nobody', session, undefined],
  ])('is none for %s', async (_what, other, principal) => {
    expect(await eventIds.open(await eventIds.mint(position, session, 'ada'), other, principal)).toBeUndefined()
  })

  test('has room in a header', async () => {
    expect((await eventIds.mint(position, session, 'ada')).length).toBeLessThan(1_000)
  })
})

test.each([
  ['a result', { result: { _meta: { [KEY]: 'state' } } }, 'state'],
  ['an error', { error: { code: 1, message: '', data: { _meta: { [KEY]: 'state' } } } }, 'state'],
  ['a result without', { result: { _meta: {} } }, undefined],
  ['a result that is none', { result: 7 }, undefined],
  ['an error without data', { error: { code: 1, message: '' } }, undefined],
  ['an error that is none', { error: null }, undefined],
  ['a result whose _meta is none', { result: { _meta: 'no' } }, undefined],
])('The state in %s is found, or is not there', (_what, message, found) => {
  expect(stateIn(message)).toBe(found)
})

test('A question keeps what else is in its _meta, and so does an answer', () => {
  const request = { method: 'roots/list', params: { _meta: { theirs: 1 } } }
  const asked = withState(request, 'state') as { params: Record<string, unknown> }
  expect(asked.params).toEqual({ _meta: { theirs: 1, [KEY]: 'state' } })
  expect(withState({ method: 'roots/list' }, 'state')).toEqual({
    method: 'roots/list',
    params: { _meta: { [KEY]: 'state' } },
  })
  expect(withoutState({ roots: [], ...asked.params })).toEqual({ roots: [], _meta: { theirs: 1 } })
  expect(withoutState({ roots: [], _meta: { [KEY]: 'state' } })).toEqual({ roots: [] })
})
