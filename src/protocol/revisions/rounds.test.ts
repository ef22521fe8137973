import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message, Rounds } from './rounds.ts'
import { negotiated, OLDER_NAMES, olderRevision } from './index.ts'
import { OPT_IN } from './rounds.ts'

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const drafts = OPT_IN.map((name) => ({ name, rounds: olderRevision(name, OPT_IN)?.rounds as Rounds }))

test('every draft that may be opted into is there, and is spoken only where it is named', () => {
  for (const name of OPT_IN) {
    expect(olderRevision(name)).toBeUndefined()
    expect(olderRevision(name, [name])?.name).toBe(name)
    expect(negotiated(name).name).toBe('2025-11-25')
    expect(negotiated(name, [name]).name).toBe(name)
  }
  expect(OLDER_NAMES.filter((name) => olderRevision(name) === undefined)).toEqual(OPT_IN)
})

test('no name can be taken for that of a release', () => {
  for (const name of OPT_IN) expect(name).not.toMatch(/^\d{4}-\d\d-\d\d$/)
})

describe.each(drafts)('$name', ({ rounds }) => {
  const { readRetry, writeRetry, readResponse, writeResponse } = rounds
  const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }))
  const answers = fc.option(fc.dictionary(fc.string(), object), { nil: undefined })
  const state = fc.option(fc.string({ unit: 'binary' }), { nil: undefined })

  test('a server reads of a retry what the client wrote', () => {
    fc.assert(
      fc.property(answers, state, (given, known) => {
        const { inParams, beside } = writeRetry(given, known)
        const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"${inParams}}${beside}}`
        const { inputResponses, requestState } = readRetry(JSON.parse(text) as Message)
        expect(inputResponses).toEqual(given === undefined ? undefined : json(given))
        expect(requestState).toBe(known)
      }),
    )
  })

  test('a client reads of a response what the server wrote', () => {
    const interim = fc.record({
      resultType: fc.constant('input_required'),
      inputRequests: fc.option(object, { nil: undefined }),
      requestState: fc.string(),
      _meta: fc.option(object, { nil: undefined }),
    })
    const final = object.map((rest): Message => Object.assign(rest, { resultType: 'complete' }))
    fc.assert(
      fc.property(fc.oneof(interim, final), (result) => {
        const message = json({ jsonrpc: '2.0', id: 1, ...writeResponse(result) }) as Message
        expect(json(readResponse(message))).toEqual({ jsonrpc: '2.0', id: 1, result: json(result) })
      }),
    )
  })

  test('an error is read as it is', () => {
    const message = { jsonrpc: '2.0', id: 1, error: { code: -32602, message: 'No.' } }
    expect(readResponse(message)).toEqual(message)
  })

  test('anything at all can be read, as a request and as a response', () => {
    fc.assert(
      fc.property(object, (message) => {
        expect(() => readResponse(message)).not.toThrow()
        expect(readRetry({ params: message })).toBeTypeOf('object')
      }),
    )
  })
})
