import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const COMMAND = fileURLToPath(new URL('./run.mjs', import.meta.url))
const CORPUS = fileURLToPath(new URL('./corpus', import.meta.url))

interface Ran {
  readonly code: number
  readonly printed: string
}

let out = ''
beforeAll(() => {
  out = mkdtempSync(join(tmpdir(), 'rally-fuzz-test-'))
})
afterAll(() => rmSync(out, { recursive: true, force: true }))

function fuzz(...args: string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(process.execPath, [COMMAND, '--out', out, ...args], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), printed: stdout + stderr })
    })
  })
}

function written(kind: string): { input: unknown; reproduced: boolean }[] {
  return readdirSync(out)
    .filter((name) => name.startsWith(`planted-${kind}-`))
    .map((name) => JSON.parse(readFileSync(join(out, name), 'utf8')) as { input: unknown; reproduced: boolean })
}

const TARGETS = ['seal', 'dispatch', 'http', 'stdio', 'older', 'client', 'schema', 'stores']

test('a short run of every target finds nothing', { timeout: 180_000 }, async () => {
  const { code, printed } = await fuzz('--seed', '1', '--inputs', '15')
  expect(printed).toContain('No findings.')
  for (const target of TARGETS) expect(printed).toMatch(new RegExp(`^${target} +15 inputs`, 'm'))
  expect(code).toBe(0)
})

test('every target has kept inputs', () => {
  for (const target of TARGETS) expect(readdirSync(join(CORPUS, target))).not.toEqual([])
})

describe('faults that were planted', () => {
  let ran: Ran
  beforeAll(async () => {
    ran = await fuzz('--target', 'planted', '--seed', '1', '--inputs', '1100', '--minutes', '5', '--hang', '5')
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
    const { code, printed } = await fuzz('--replay', join(out, file))
    expect(printed).toMatch(/^leak: Shows .*at Object\.y/)
    expect(code).toBe(1)
  })
})

test('an unknown target, and an option that is not a number, is a usage error', { timeout: 60_000 }, async () => {
  expect(await fuzz('--target', 'nothing')).toMatchObject({
    code: 2,
    printed: expect.stringContaining('There is no target "nothing".'),
  })
  expect(await fuzz('--minutes', 'soon')).toMatchObject({
    code: 2,
    printed: expect.stringContaining('--minutes must be a number'),
  })
})
