import { describe, expect, test } from 'vitest'
import { emptyState, readFlowState, writeFlowState } from './flow-state.ts'
import { Journal } from './journal.ts'

const TEXT = '["s","a",1,"x","a","b",2,["pin",1,"accept",{"n":1}],"sv","c",3,null]'

describe('a journal', () => {
  test('is the text it was read from, until something is appended', () => {
    const journal = Journal.read(TEXT)
    expect(journal.text()).toBe(TEXT)
    journal.append('s', 'd', 4, '[true]')
    expect(journal.text()).toBe(`${TEXT.slice(0, -1)},"s","d",4,[true]]`)
    expect(Journal.read(journal.text()).get('d')).toMatchObject({ tag: 's', at: 4, payload: [true] })
  })

  test('begins empty', () => {
    const journal = Journal.empty()
    expect([journal.text(), journal.length, journal.bytes]).toEqual(['[]', 0, 2])
    expect(Journal.read('[]').text()).toBe('[]')
  })

  test.each([
    { name: 'no JSON', text: '["s",', why: 'not JSON' },
    { name: 'no list', text: '{"s":1}', why: 'cut off' },
    { name: 'a part of an entry', text: '["s","a",1]', why: 'cut off' },
    { name: 'an unknown tag', text: '["x","a",1,null]', why: 'unknown form' },
    { name: 'a key that is no text', text: '["s",1,1,null]', why: 'unknown form' },
    { name: 'a time that is no number', text: '["s","a","1",null]', why: 'unknown form' },
    { name: 'an answer without its pin', text: '["a","a",1,{"n":1}]', why: 'answer to "a" has an unknown form' },
    { name: 'an answer without its count', text: '["a","a",1,["pin"]]', why: 'answer to "a" has an unknown form' },
  ])('that holds $name is refused', ({ text, why }) => {
    expect(() => Journal.read(text)).toThrow(
      expect.objectContaining({ code: 'JOURNAL_INVALID', message: expect.stringContaining(why) }),
    )
  })

  test('rule 12: counts its bytes as entries come and go', () => {
    const journal = Journal.read(TEXT)
    journal.append('s', '\u00fc>\u00e4', 4, '"\u00f6"')
    journal.append('s', 'd', 5, '1')
    expect(journal.bytes).toBeGreaterThanOrEqual(Buffer.byteLength(journal.text()))
    expect(journal.bytes).toBeLessThanOrEqual(Buffer.byteLength(journal.text()) + 2)
    journal.dropScope('\u00fc>', 0)
    expect(journal.text()).not.toContain('\u00f6')
    journal.remove(journal.at(0) ?? fail())
    expect(journal.text()).toBe('["a","b",2,["pin",1,"accept",{"n":1}],"sv","c",3,null,"s","d",5,1]')
    expect(journal.bytes).toBeLessThanOrEqual(Buffer.byteLength(journal.text()) + 2)
    expect(journal.bytes).toBeGreaterThanOrEqual(Buffer.byteLength(journal.text()))
  })

  test('cuts an entry and all after it, and gives what it cut', () => {
    const journal = Journal.read(TEXT)
    expect(journal.cut(journal.at(1) ?? fail()).map(({ key }) => key)).toEqual(['b', 'c'])
    expect(journal.text()).toBe('["s","a",1,"x"]')
    expect(journal.get('b')).toBeUndefined()
  })

  test('drops the contents of a scope wherever they are, and says how far it has been replayed then', () => {
    const journal = Journal.read('["s","x>a",1,1,"s","b",2,2,"s","x>c",3,3,"s","x",4,4,"s","xy",5,5]')
    expect(journal.dropScope('x>', 2)).toBe(1)
    expect(journal.text()).toBe('["s","b",2,2,"s","x",4,4,"s","xy",5,5]')
  })

  test('keeps what it was read from, whatever a handler does to a payload', () => {
    const journal = Journal.read('["s","a",1,{"list":[1]},"s","b",2,2]')
    const { payload } = journal.at(0) ?? fail()
    ;(payload as { list: number[] }).list.push(2)
    journal.cut(journal.at(1) ?? fail())
    expect(journal.text()).toBe('["s","a",1,{"list":[1]}]')
  })

  test('names its largest entries, old and new', () => {
    const journal = Journal.read(TEXT)
    journal.append('s', 'big', 4, `"${'x'.repeat(100)}"`)
    expect(journal.largest(2)).toEqual(['"big" (114 bytes)', '"b" (36 bytes)'])
  })
})

describe('what a flow carries beside its journal', () => {
  test('is the same after being written and read', () => {
    const flowState = emptyState()
    flowState.open.set('a', { pin: 'p', asked: 2 })
    flowState.held.set('b', { pin: 'q', asked: 1, answer: { action: 'accept', value: null } })
    flowState.held.set('c', { pin: 'r', asked: 1, answer: { action: 'decline', value: undefined } })
    flowState.held.set('d', { pin: 's', asked: 3, answer: { raw: { action: 'accept' } } })
    expect(readFlowState(JSON.parse(JSON.stringify(writeFlowState(flowState))))).toStrictEqual(flowState)
  })

  test.each([null, {}, [], [[]], [[], {}], [[1], []], [[['a', 'p']], []], [[], [['a', 1, 1, 'raw', {}]]]])(
    'is refused in the form %j',
    (json) => {
      expect(() => readFlowState(json)).toThrow(expect.objectContaining({ code: 'JOURNAL_INVALID' }))
    },
  )
})

function fail(): never {
  throw new Error('There is no such entry.')
}
