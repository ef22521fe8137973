import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { FuzzCommand } from './command.ts'

const CORPUS = fileURLToPath(new URL('./corpus', import.meta.url))

const command = new FuzzCommand()
afterAll(() => command.remove())

const TARGETS = ['seal', 'dispatch', 'http', 'stdio', 'older', 'client', 'schema', 'stores']

test('a short run of every target finds nothing', { timeout: 180_000 }, async () => {
  const { code, printed } = await command.run('--seed', '1', '--inputs', '15')
  expect(printed).toContain('No findings.')
  for (const target of TARGETS) expect(printed).toMatch(new RegExp(`^${target} +15 inputs`, 'm'))
  expect(code).toBe(0)
})

test('every target has kept inputs', () => {
  for (const target of TARGETS) expect(readdirSync(join(CORPUS, target))).not.toEqual([])
})

test('an unknown target, and an option that is not a number, is a usage error', { timeout: 60_000 }, async () => {
  expect(await command.run('--target', 'nothing')).toMatchObject({
    code: 2,
    printed: expect.stringContaining('There is no target "nothing".'),
  })
  expect(await command.run('--minutes', 'soon')).toMatchObject({
    code: 2,
    printed: expect.stringContaining('--minutes must be a number'),
  })
})
