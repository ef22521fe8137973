import { describe, expect, test } from 'vitest'
import { emptyState, writeFlowState } from '../flow/flow-state.ts'
import type { ShownQuestion } from '../flow/flow-state.ts'
import type { TaskFlowState } from './state.ts'
import { flowStateOf, showQuestions, isByHand, newState, readState, takeAnswers, writeState } from './state.ts'

function question(pin: string, text = `"${pin}"`, asked = 1): ShownQuestion {
  return { pin, asked, text }
}

function shows(state: TaskFlowState): Record<string, string> {
  return Object.fromEntries(Object.entries(state.shown).map(([wire, { text }]) => [wire, text]))
}

function fresh(): TaskFlowState {
  return newState(undefined, writeFlowState(emptyState()))
}

describe('wire keys', () => {
  test('are the keys of the author when a question is first shown', () => {
    const state = fresh()
    showQuestions(state, new Map([['a', question('1')]]))
    expect(shows(state)).toEqual({ a: '"1"' })
  })

  test('stay for a question that is still open, and so does its text, whatever note it is asked with now', () => {
    const state = fresh()
    showQuestions(state, new Map([['a', question('1', '"Noted."', 2)]]))
    showQuestions(
      state,
      new Map([
        ['a', question('1', '"Plain."', 2)],
        ['b', question('2')],
      ]),
    )
    expect(shows(state)).toEqual({ a: '"Noted."', b: '"2"' })
  })

  test('are fresh for a question that was answered or has changed, and never those of before', () => {
    const state = fresh()
    const seen = new Set<string>()
    for (let times = 1; times <= 5; times += 1) {
      showQuestions(state, new Map([['a', question(times % 2 === 0 ? '1' : '2')]]))
      const [wire = ''] = Object.keys(state.shown)
      expect(seen.has(wire)).toBe(false)
      seen.add(wire)
      if (times % 2 === 0) takeAnswers(state, { [wire]: {} }, 0)
      state.answers = readState(writeState(fresh())).answers
    }
    expect([...seen]).toEqual(['a', 'a~2', 'a~3', 'a~4', 'a~5'])
  })

  test('leave with the question, unless the pass has not reached it yet', () => {
    const state = fresh()
    showQuestions(
      state,
      new Map([
        ['a', question('1')],
        ['b', question('2')],
        ['c', question('3')],
      ]),
    )
    showQuestions(state, new Map([['a', question('1')]]), new Map([['b', {}]]))
    expect(Object.keys(state.shown).toSorted()).toEqual(['a', 'b'])
    showQuestions(state, new Map())
    expect(shows(state)).toEqual({})
  })

  test('are not shown for a question that has been answered meanwhile', () => {
    const state = fresh()
    showQuestions(state, new Map([['a', question('1')]]))
    expect(takeAnswers(state, { a: { action: 'accept' } }, 0)).toBe(1)
    showQuestions(
      state,
      new Map([
        ['a', question('1')],
        ['b', question('2')],
      ]),
    )
    expect(shows(state)).toEqual({ b: '"2"' })
  })
})

describe('answers', () => {
  test('are taken for what is shown, under the key of the author, with what was shown', () => {
    const state = fresh()
    showQuestions(
      state,
      new Map([
        ['a', question('1', '"1"', 2)],
        ['b', question('2')],
      ]),
    )
    const given = { a: { action: 'accept' }, c: {}, 'a~2': {}, __proto__: {}, constructor: {} }
    expect(takeAnswers(state, given, 7)).toBe(1)
    expect(Object.entries(state.answers)).toEqual([
      ['a', { open: { pin: '1', asked: 2 }, raw: { action: 'accept' }, at: 7 }],
    ])
    expect(takeAnswers(state, given, 0)).toBe(0)
  })

  test('and what is shown are what the next pass carries as open', () => {
    const state = fresh()
    showQuestions(
      state,
      new Map([
        ['a', question('1')],
        ['b', question('2', '"2"', 3)],
      ]),
    )
    takeAnswers(state, { a: {} }, 0)
    expect([...flowStateOf(state).open]).toEqual([
      ['b', { pin: '2', asked: 3 }],
      ['a', { pin: '1', asked: 1 }],
    ])
  })
})

describe('a state', () => {
  test('comes back from its text as it was, whatever its keys are called', () => {
    const state = newState('2', writeFlowState(emptyState()), JSON.parse('{"__proto__":{"a":1},"toString":{}}'))
    showQuestions(state, new Map([['constructor', question('1')]]))
    const read = readState(writeState(state))
    expect(read).toEqual(state)
    expect(Object.keys(read.answers)).toEqual(['__proto__', 'toString'])
    expect(takeAnswers(read, { hasOwnProperty: {} }, 0)).toBe(0)
  })

  test('without a version has none when it is read either', () => {
    expect(readState(writeState(fresh())).version).toBeUndefined()
  })

  test('is by hand once its handler has returned what to ask', () => {
    expect(isByHand(fresh())).toBe(false)
    expect(isByHand(newState(undefined, writeFlowState({ ...emptyState(), byHand: {} })))).toBe(true)
  })
})
