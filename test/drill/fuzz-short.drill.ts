// The fuzzer itself: faults that were planted are found, and their inputs made small.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Ran } from '../fuzz/command.ts'
import { FuzzCommand } from '../fuzz/command.ts'

const command = new FuzzCommand()
const { out } = command
afterAll(() => command.remove())

function written(kind: string): { input: unknown; reproduced: boolean }[] {
  return readdirSync(out)
    .filter((name) => name.startsWith(`planted-${kind}-`))
    .map((name) => JSON.parse(readFileSync(join(out, name), 'utf8')) as { input: unknown; reproduced: boolean })
}

describe('faults that were planted', () => {
  let ran: Ran
  beforeAll(async () => {
    ran = await command.run('--target', 'planted', '--seed', '1', '--inputs', '1100', '--minutes', '5', '--hang', '5')
  }, 300_000)

  test('make the command fail', () => {
    expect(ran.code).toBe(1)
    expect(ran.printed).toContain(`9 findings, written to ${out}`)
  })

  test.each([
    ['crash', [{ fault: 'crash', noise: [7] }]],
    ['slow', [{ fault: 'busy', noise: [7] }]],
    ['uncaught', [{ fault: 'rejects', noise: [7] }]],
    ['internal', [{ fault: 'throws', noise: [7] }]],
    ['leak', [{ fault: 'leaks', noise: [7] }]],
    ['pollution', [{ fault: 'pollutes', noise: [7] }]],
  ])('%s is found, and its input made as small as it can be', (kind, inputs) => {
    expect(written(kind).map(({ input }) => input)).toEqual(inputs)
    expect(written(kind).every(({ reproduced }) => reproduced)).toBe(true)
  })

  test('an endless loop is found, and a promise that never settles', () => {
    const faults = written('hang').map(({ input }) => (input as { fault: string }).fault)
    expect(faults.toSorted()).toEqual(['loop', 'never'])
  })

  test('growing memory is found, which no single input shows', () => {
    expect(written('memory')).toMatchObject([{ reproduced: false }])
  })

  test('one of them is found again from its file alone', { timeout: 120_000 }, async () => {
    const file = readdirSync(out).find((name) => name.startsWith('planted-leak-')) ?? ''
    const { code, printed } = await command.run('--replay', join(out, file))
    expect(printed).toMatch(/^leak: Shows .*at Object\.y/)
    expect(code).toBe(1)
  })
})
