import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { watchCode } from './watch.ts'

test('a declaration that changes is not code that changes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rally-watch-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const changed = new Promise((resolve) => onTestFinished(watchCode([folder], resolve)))
  for (const name of ['server.d.ts', 'server.d.mts', 'app.ts']) await writeFile(join(folder, name), '')
  // The first path of a burst is reported.
  expect(await changed).toBe(join(folder, 'app.ts'))
})
