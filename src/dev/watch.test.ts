import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { watchCode } from './watch.ts'

test('a declaration that changes is not code that changes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rally-watch-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const changed = new Promise((resolve) => onTestFinished(watchCode([folder], resolve, unexpected)))
  for (const name of ['server.d.ts', 'server.d.mts', 'app.ts']) await writeFile(join(folder, name), '')
  // The first path of a burst is reported.
  expect(await changed).toBe(join(folder, 'app.ts'))
})

test('a folder that cannot be watched is reported, unless it is missing', async () => {
  const told: string[] = []
  const [missing, tooLong] = ['missing', 'x'.repeat(300)].map((name) => join(tmpdir(), name))
  const end = watchCode([missing ?? '', tooLong ?? '', `${tooLong}y`], unexpected, (line) => told.push(line))
  end()
  expect(told).toEqual([
    `watch: ${tooLong} must be a folder that can be watched, got ENAMETOOLONG. Restart rally dev after a change there.`,
  ])
})

function unexpected(said: string): never {
  throw new Error(`This was not expected: ${said}`)
}
