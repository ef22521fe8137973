import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { emptyState } from './flow-state.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { Io } from './io.ts'
import { Journal } from './journal.ts'
import type { Outcome } from './carrier.ts'
import type { PassInput } from './carrier.ts'
import { runPass } from '../testing/manual-scheduler.ts'

const NUMBER = z.object({ n: z.number() })
const FLOWS = 10_000
const TOGETHER = 500
const MB = 1024 * 1024

describe('rules 1 and 12: a pass that has ended keeps nothing', () => {
  test.each([{ strict: false }, { strict: true }])(
    '10,000 parked flows leave no memory behind (strict: $strict)',
    async ({ strict }) => {
      // What a host holds longer than a pass.
      const cancels = Array.from({ length: FLOWS }, () => new Cancel())
      const park = async (count: number): Promise<void> => {
        for (let i = 0; i < count; i += TOGETHER) {
          const kinds = await Promise.all(
            cancels
              .slice(i, i + TOGETHER)
              .map(async (cancel) => (await runPass(inputOf({ cancel, strict }), parking)).kind),
          )
          expect(new Set(kinds)).toEqual(new Set(['asks']))
        }
      }
      await park(TOGETHER)
      await collectedUntil(() => true)
      const before = process.memoryUsage().heapUsed
      await park(FLOWS)
      const isBack = (): boolean => process.memoryUsage().heapUsed < before + 2 * MB
      expect(await collectedUntil(isBack)).toBe(true)
      expect(cancels).toHaveLength(FLOWS)
    },
  )

  test.each<{ end: string; run: (io: Io, cancel: Cancel) => unknown; kind: Outcome['kind'] }>([
    { end: 'is parked on a question', run: (io) => io.ask('a', 'A?', NUMBER), kind: 'asks' },
    { end: 'is parked in a scope', run: (io) => io.scope('s', (inner) => inner.ask('a', 'A?', NUMBER)), kind: 'asks' },
    {
      end: 'is handed over',
      run: (io) => io.step('s', () => 1).then(() => io.step('t', () => 2)),
      kind: 'deferred',
    },
    { end: 'is handed over at a yield', run: (io) => io.step('s', () => 1).then(() => io.yield()), kind: 'deferred' },
    {
      end: 'is cancelled',
      run: (io, cancel) => io.step('s', () => cancel.cancel()).then(() => io.ask('a', 'A?', NUMBER)),
      kind: 'cancelled',
    },
    { end: 'has failed', run: (io) => io.step('not a key', () => 1), kind: 'failed' },
    {
      end: 'is done with a question open',
      run: (io) => {
        io.ask('a', 'A?', NUMBER).catch(() => {})
        return 'done'
      },
      kind: 'done',
    },
  ])(
    'the frame of a handler that $end is collected, while the request and its outcome live on',
    async ({ run, kind }) => {
      const cancel = new Cancel()
      let frame: WeakRef<object> | undefined
      const handler = async (io: Io): Promise<unknown> => {
        const held = { much: 'x'.repeat(1_000) }
        frame = new WeakRef(held)
        io.signal.addEventListener('abort', () => held.much.length)
        io.onSuspend(() => held.much.length)
        try {
          return await run(io, cancel)
        } finally {
          held.much = ''
        }
      }
      const outcome = await runPass(inputOf({ cancel, wantsHandover: () => true }), handler)
      expect(frame).toBeDefined()
      // An error holds on to the frames it was thrown through until somebody reads its stack.
      if (outcome.kind === 'failed') expect((outcome.error as Error).stack).toContain('not a key')
      expect(await collectedUntil(() => frame?.deref() === undefined)).toBe(true)
      expect([outcome.kind, cancel.cancelled]).toEqual([kind, kind === 'cancelled'])
    },
  )
})

describe('rule 12: a pass costs time linear in the journal', () => {
  test.each([10, 100, 1_000])(
    'replaying %i entries takes as many settlements, and one turn at the end',
    async (entries) => {
      const steps = async (io: Io): Promise<void> => {
        for (let i = 0; i < entries; i += 1) await io.step(`s[${i}]`, () => i)
        await io.ask('a', 'A?', NUMBER)
      }
      const limits = { journalBytes: MB, passMs: 10_000 }
      const first = await runPass(inputOf({ limits }), steps)
      const journal = Journal.read(first.kind === 'asks' ? first.journal.text() : '')
      expect(journal.length).toBe(entries)
      let [drains, turns] = [0, 0]
      const scheduler = {
        drained: (run: () => void): void => {
          drains += 1
          queueMicrotask(() => process.nextTick(run))
        },
        turn: (run: () => void): void => {
          turns += 1
          setImmediate(run)
        },
        after: () => () => {},
        sleep: () => Promise.resolve(),
      }
      await runPass(inputOf({ limits, journal, scheduler }), steps)
      expect(drains).toBeLessThanOrEqual(entries + 2)
      expect(turns).toBe(1)
    },
  )

  test('text that came in is appended to and never written again', async () => {
    // A blank that our own writing never leaves.
    const journal = Journal.read('["s","s",5, 1]')
    const outcome = await runPass(inputOf({ journal, answers: {} }), async (io) => {
      await io.step('s', () => 1)
      await io.step('t', () => 2)
      await io.ask('b', 'B?', NUMBER)
    })
    expect(outcome.kind === 'asks' && outcome.journal.text()).toMatch(/^\["s","s",5, 1,"s","t",\d+,2\]$/)
  })
})

async function parking(io: Io): Promise<void> {
  const held = { much: 'x'.repeat(1_000), io }
  io.onSuspend(() => held.much.length)
  await io.step('s', ({ signal }) => signal.aborted)
  io.signal.addEventListener('abort', () => held.much.length)
  await Promise.race([
    io.ask('a', 'A?', NUMBER),
    io.scope('s2', (inner) => inner.ask('b', 'B?', NUMBER)),
    new Promise(() => {}),
  ])
}

function inputOf(input: Partial<PassInput>): PassInput {
  return {
    flow: { id: 'flow', startedAt: 0, round: 0, revision: '2026-07-28', declared: () => true },
    journal: Journal.empty(),
    flowState: emptyState(),
    answers: undefined,
    target: { method: 'tools/call', target: 'test' },
    forms: new Map(),
    can: () => true,
    limits: { journalBytes: 10_000, passMs: 60_000 },
    logger: { warn: () => {}, error: () => {} },
    ...input,
  }
}

/**
 * Collects garbage until the condition holds, and tells whether it came to that. Once is not always enough: a collection
 * may free what only the next one finds, and the compiler holds on to a function while it optimizes it beside us.
 */
async function collectedUntil(holds: () => boolean): Promise<boolean> {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('Run the tests with --expose-gc.')
  for (let tries = 0; tries < 50; tries += 1) {
    await new Promise((resolve) => void setImmediate(resolve))
    gc()
    if (tries >= 3 && holds()) return true
  }
  return false
}
