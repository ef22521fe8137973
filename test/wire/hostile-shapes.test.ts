import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  META_VERSION,
} from '../../src/protocol/revisions/2026-07-28.ts'
import { ARGS, expectFate, expectServed, guardPrototypes, hostileApp, secondRound, WANTED } from './hostile.ts'
import type { WireRequest } from './messages.ts'
import { accept, call, headersOf, request, resultOf, textOf } from './messages.ts'
import { at, extended, pathsOf, replaced } from './paths.ts'
import type { RawWire } from './raw.ts'
import { rawWires } from './raw.ts'
import { replacements } from './replacements.ts'

guardPrototypes()

describe.each(rawWires)('$name', ({ open }) => {
  const app = hostileApp()
  let wire: RawWire
  let retry: WireRequest

  beforeAll(async () => {
    wire = await open(app)
    retry = await secondRound(app)
  })
  afterAll(() => wire.close())

  /** The second round with other answers. */
  const answering = (inputResponses: unknown): WireRequest =>
    call('deploy', ARGS, { requestState: retry.params['requestState'], inputResponses })

  describe('a valid message with any part of it replaced', () => {
    test.each(replacements)('$name', async ({ message, fates }) => {
      const valid = message(retry)
      const paths = pathsOf(valid)
      expect(paths.map((path) => path.join(' ')).toSorted()).toEqual(Object.keys(fates).toSorted())
      for (const path of paths) {
        for (const value of [null, 7, 'x', [], {}, true]) {
          const changed = replaced(valid, path, value)
          const headers = { ...headersOf(valid), ...headersOf(changed) }
          const answer = await wire.send(JSON.stringify(changed), { headers })
          expectFate(answer, fates[path.join(' ')]?.(value) ?? '', `${path.join(' ')} = ${JSON.stringify(value)}`)
        }
      }
      await expectServed(wire)
    })
  })

  describe('names that every object has', () => {
    const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', 'then']

    test('are properties like any other, wherever they are added', async () => {
      const evil = JSON.parse(
        `{${names.map((name) => `"${name}":{"polluted":true,"prototype":{"polluted":true}}`).join()}}`,
      )
      for (const valid of [call('deploy', ARGS, {}, WANTED), retry]) {
        const objects = pathsOf(valid).filter((path) => JSON.stringify(at(valid, path)).startsWith('{'))
        expect(objects.length).toBeGreaterThan(10)
        for (const path of objects) {
          const changed = extended(valid, path, evil as object)
          const served = valid === retry ? 'done' : 'asks'
          // Not the arguments that the state was minted for.
          const fate = valid === retry && path[1] === 'arguments' ? '200 frozen' : served
          expectFate(await wire.send(JSON.stringify(changed)), fate, path.join(' '))
        }
      }
      expect(Reflect.get({}, 'polluted')).toBeUndefined()
      await expectServed(wire)
    })

    test.each(names)('%s is the name of no tool, method, level or question', async (name) => {
      const own = (value: unknown): object => JSON.parse(`{"${name}":${JSON.stringify(value)}}`) as object
      expectFate(await wire.send(JSON.stringify(call(name))), '200 -32602')
      expectFate(await wire.send(JSON.stringify(request(name))), '404 -32601')
      expectFate(await wire.send(JSON.stringify(request('tools/list', {}, { [META_LOG_LEVEL]: name }))), '400 -32602')
      expectFate(await wire.send(JSON.stringify(answering(own(accept({ ok: true }))))), 'asks')
      expectFate(await wire.send(JSON.stringify(answering({ ok: accept(own({ ok: true }) as never) }))), 'asks')
      expectFate(
        await wire.send(JSON.stringify(answering({ ok: own({ action: 'accept', content: { ok: true } }) }))),
        'asks',
      )
    })

    test('come back as they came when a tool gives its arguments back', async () => {
      const args = '{"__proto__":{"polluted":[1]},"constructor":null,"a":{"__proto__":"x"}}'
      const { message } = await wire.send(JSON.stringify(call('mirror', JSON.parse(args) as object)))
      expect(JSON.stringify(resultOf(message)['structuredContent'])).toBe(args)
      expect(textOf(message)).toBe(args)
    })
  })

  describe('10,000 levels of arrays and of objects', () => {
    const deeps = [`${'['.repeat(10_000)}${']'.repeat(10_000)}`, `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`]
    const valid = call('deploy', ARGS, {}, WANTED)

    test.each([
      { path: [], fate: '400 -32600' },
      { path: ['id'], fate: '400 -32600' },
      { path: ['jsonrpc'], fate: '400 -32600' },
      { path: ['method'], fate: '400 -32600' },
      { path: ['more'], fate: 'asks' },
      { path: ['params', 'more'], fate: 'asks' },
      { path: ['params', '_meta'], fate: '400 -32602' },
      { path: ['params', '_meta', 'more'], fate: 'asks' },
      { path: ['params', '_meta', META_VERSION], fate: '400 -32602' },
      { path: ['params', '_meta', META_CAPABILITIES, 'roots'], fate: 'asks' },
      { path: ['params', '_meta', META_CAPABILITIES, 'more'], fate: 'asks' },
      { path: ['params', '_meta', META_CLIENT_INFO, 'more'], fate: 'asks' },
      { path: ['params', '_meta', META_LOG_LEVEL], fate: '400 -32602' },
      { path: ['params', '_meta', 'progressToken'], fate: '400 -32602' },
      { path: ['params', 'name'], fate: '200 -32602' },
      { path: ['params', 'arguments'], fate: '200 -32602' },
      { path: ['params', 'arguments', 'env'], fate: '200 -32602' },
      { path: ['params', 'arguments', 'more'], fate: '200 -32602' },
      { path: ['params', 'requestState'], fate: '200 frozen' },
      { path: ['params', 'inputResponses'], fate: '200 -32602' },
      { path: ['params', 'inputResponses', 'ok'], fate: '200 -32602' },
      { path: ['params', 'inputResponses', 'unasked'], fate: '200 -32602' },
      { path: ['params', 'inputResponses', 'ok', 'content'], fate: '200 -32602' },
    ])('at $path', async ({ path, fate }) => {
      const holed = JSON.stringify(replaced(path[1] === 'inputResponses' ? retry : valid, path, 'HOLE'))
      for (const deep of deeps) {
        const answer = await wire.send(holed.replace('"HOLE"', deep), { headers: headersOf(valid) })
        expectFate(answer, fate, deep.slice(0, 5))
      }
      await expectServed(wire)
    })

    test('are refused to a tool that would give them back, and a hundred are not', async () => {
      expectFate(await wire.send(JSON.stringify(call('mirror', nested(100)))), 'done')
      expectFate(await wire.send(JSON.stringify(call('mirror', nested(101)))), '200 -32602')
    })
  })

  describe('names and values of a mebibyte', () => {
    const huge = 'x'.repeat(1024 * 1024)

    test.each([
      { where: 'a name of an argument', message: () => call('deploy', { ...ARGS, [huge]: 1 }), fate: 'asks' },
      { where: 'a name in _meta', message: () => call('deploy', ARGS, {}, { [huge]: 1 }), fate: 'asks' },
      { where: 'an unasked answer', message: () => answering({ [huge]: accept() }), fate: 'asks' },
      { where: 'the name of a wrong answer', message: () => answering({ [huge]: 1 }), fate: '200 -32602' },
      { where: 'a name inside an answer', message: () => answering({ ok: accept({ [huge]: 1 }) }), fate: 'asks' },
      { where: 'a state', message: () => call('deploy', ARGS, { requestState: huge }), fate: '200 frozen' },
      { where: 'an argument', message: () => call('deploy', { ...ARGS, env: huge }), fate: 'asks' },
      {
        where: 'a progress token',
        message: () => call('deploy', ARGS, {}, { progressToken: huge }),
        fate: '400 -32602',
      },
      { where: 'a log level', message: () => call('deploy', ARGS, {}, { [META_LOG_LEVEL]: huge }), fate: '400 -32602' },
    ])('$where', async ({ message, fate }) => {
      const sent = message()
      const answer = await wire.send(JSON.stringify(sent))
      expectFate(answer, fate)
      expect(answer.message?.id).toBe(sent.id)
      await expectServed(wire)
    })

    test('an id is refused and not repeated', async () => {
      const answer = await wire.send(JSON.stringify({ ...call('deploy', ARGS), id: huge }))
      expectFate(answer, '400 -32600')
      expect(JSON.stringify(answer.message).length).toBeLessThan(1024)
      await expectServed(wire)
    })

    test('are not said again in an error', async () => {
      for (const sent of [call(huge), request(huge), answering({ [huge]: 1 })]) {
        // No header has room for such a name.
        const { message } = await wire.send(JSON.stringify(sent), { headers: headersOf(call('x')) })
        expect(JSON.stringify(message?.error).length).toBeLessThan(1_000)
      }
    })
  })

  describe('answers', () => {
    const wrong: readonly { kind: string; answers: readonly object[] }[] = [
      {
        kind: 'deploy',
        answers: [
          { role: 'assistant', content: { type: 'text', text: 'ok' }, model: 'm' },
          { roots: [] },
          {},
          { action: 'accept' },
          { action: 'ACCEPT', content: { ok: true } },
          { action: ['accept'], content: { ok: true } },
          { action: 'accept', content: { ok: 'true' } },
          { action: 'accept', content: { ok: 1 } },
          { action: 'accept', content: [true] },
          { content: { ok: true } },
          { result: { action: 'accept', content: { ok: true } } },
        ],
      },
      {
        kind: 'sample',
        answers: [
          accept({ ok: true }),
          {},
          { role: 'assistant', content: 'text', model: 'm' },
          { role: 'system', content: { type: 'text', text: 'x' }, model: 'm' },
          { role: 'assistant', content: { type: 'text', text: 'x' } },
          { role: 'assistant', content: [1], model: 'm' },
          { role: 'assistant', content: { type: 'text', text: 'x' }, model: {} },
        ],
      },
      {
        kind: 'roots',
        answers: [
          accept(),
          {},
          { roots: {} },
          { roots: [1] },
          { roots: [{}] },
          { roots: [{ uri: 1 }] },
          { roots: null },
        ],
      },
      { kind: 'visit', answers: [{}, { roots: [] }, { action: true }, { action: null }] },
    ]
    const cases = wrong.flatMap(({ kind, answers }) => answers.map((answer) => ({ kind, answer })))

    test.each(cases)('of the wrong kind are asked for again: $answer to $kind', async ({ kind, answer }) => {
      const args = kind === 'deploy' ? ARGS : {}
      const key = kind === 'deploy' ? 'ok' : 'q'
      const first = await wire.send(JSON.stringify(call(kind, args)))
      const { requestState } = resultOf(first.message)
      const again = await wire.send(
        JSON.stringify(call(kind, args, { requestState, inputResponses: { [key]: answer } })),
      )
      expectFate(again, 'asks')
      expect(Object.keys(resultOf(again.message)['inputRequests'] as object)).toEqual([key])
    })

    test('that nobody asked for are ignored', async () => {
      const more = Object.fromEntries(Array.from({ length: 999 }, (_, i) => [`q${i}`, accept({ i })]))
      expectFate(await wire.send(JSON.stringify(answering({ ...more, ok: accept({ ok: true }) }))), 'done')
      expectFate(await wire.send(JSON.stringify(call('echo', { text: 'x' }, { inputResponses: more }))), 'done')
    })

    test('of more than a thousand are refused', async () => {
      const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`q${i}`, accept({ i })]))
      expectFate(await wire.send(JSON.stringify(answering({ ...many, ok: accept({ ok: true }) }))), '200 -32602')
      await expectServed(wire)
    })

    test('that are null are absent', async () => {
      expectFate(await wire.send(JSON.stringify(answering(null))), 'asks')
      expectFate(await wire.send(JSON.stringify(answering({ ok: null }))), 'asks')
      expectFate(await wire.send(JSON.stringify(call('deploy', ARGS, { inputResponses: null }))), 'asks')
    })
  })

  test('a number that JSON can write and JavaScript cannot hold is bound to no state', async () => {
    const text = JSON.stringify(call('deploy', { ...ARGS, n: 'HOLE' })).replace('"HOLE"', '1e999')
    expectFate(await wire.send(text), '200 -32602')
  })
})

function nested(levels: number): object {
  return JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`) as object
}
