import fc from 'fast-check'
import { expect, test } from 'vitest'
import { packSignals, SignalQueue, unpackSignals, type StoreSignal } from './signals.ts'

const changed = (id: string, version: number): StoreSignal => ({ type: 'changed', id, version })

test('signals come back from their payloads, which PostgreSQL takes', () => {
  const ids = fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)), maxLength: 100 })
  const signal = fc.oneof(
    fc.constant<StoreSignal>({ type: 'due' }),
    fc.string({ unit: 'binary-ascii' }).map((channel): StoreSignal => ({ type: 'mail', channel })),
    fc.tuple(ids, fc.nat()).map(([id, version]) => changed(id, version)),
  )
  fc.assert(
    fc.property(fc.array(signal, { maxLength: 300 }), (signals) => {
      const payloads = packSignals(signals)
      expect(payloads.flatMap(unpackSignals)).toEqual(signals)
      for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8_000)
    }),
  )
})

test('the longest ids fit into a payload each', () => {
  const signals = Array.from({ length: 20 }, (_, i) => changed('x'.repeat(1_024), i))
  expect(packSignals(signals).flatMap(unpackSignals)).toEqual(signals)
})

test('of the changes of a task the last one is sent, and everything else once', () => {
  const queue = new SignalQueue()
  const due: StoreSignal = { type: 'due' }
  for (const signal of [changed('a', 2), due, changed('b', 1), changed('a', 3), changed('a', 1), due]) queue.add(signal)
  expect(queue.take()).toEqual([changed('a', 3), due, changed('b', 1)])
  expect(queue.size).toBe(0)
})

test.each([undefined, '', 'x unknown', 'b5 task of an earlier version'])('the payload %j is left out', (payload) => {
  expect(unpackSignals(payload)).toEqual([])
})
