import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { Child } from '../interop/child.ts'

test('A client that never answers does not keep the process from ending', async () => {
  const child = new Child(process.execPath, [fileURLToPath(new URL('./exit.mjs', import.meta.url))])
  expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(child.printed.text.trim()).toBe('application/json text/event-stream text/event-stream text/event-stream')
})
