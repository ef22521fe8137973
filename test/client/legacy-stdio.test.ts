// Older servers over the standard streams, and how they take what they do not know.
import { fileURLToPath } from 'node:url'
import type { Client } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, expect, test } from 'vitest'
import { textOf } from './wires.ts'

const SERVER = fileURLToPath(new URL('./legacy-stdio.mjs', import.meta.url))

const clients: Client[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
})

async function connected(habit: string, timeoutMs = 10_000): Promise<Client> {
  const client = await connect({ command: process.execPath, args: [SERVER, habit] }, { timeoutMs })
  clients.push(client)
  return client
}

test('a server that refuses what comes before initialize is taken for an older one', async () => {
  const client = await connected('plain')
  expect(client.revision).toBe('2025-06-18')
  expect(client.server).toMatchObject({ name: 'by hand' })
  expect(textOf(await client.callTool('go'))).toMatch(/^go in process/)
})

test.each(['listing', 'polite'])('so is a server that answers, but not as a modern one: %s', async (habit) => {
  const client = await connected(habit)
  expect(client.revision).toBe('2025-06-18')
  expect(textOf(await client.callTool('go'))).toMatch(/^go in process/)
})

test('so is a server that says nothing to it', async () => {
  const client = await connected('silent', 700)
  expect(client.revision).toBe('2025-06-18')
})

test('so is a server that ends at it', async () => {
  const client = await connected('touchy')
  expect(client.revision).toBe('2025-06-18')
})

test('a modern server that is only slow is not', async () => {
  const client = await connected('slow', 700)
  expect(client.revision).toBe('2026-07-28')
  await expect(client.callTool('die', {}, { timeoutMs: 10_000 })).rejects.toMatchObject({ code: 'LOST' })
  // A process of its own, that nobody has tried to introduce themselves to.
  expect(textOf(await client.callTool('go', {}, { timeoutMs: 10_000 }))).toBe('Who are you?')
})

test('a server that has died is introduced to again when it is next needed', async () => {
  const client = await connected('plain')
  const before = textOf(await client.callTool('go'))
  await expect(client.callTool('die')).rejects.toMatchObject({ code: 'LOST' })
  const after = textOf(await client.callTool('go'))
  expect(after).toMatch(/^go in process/)
  expect(after).not.toBe(before)
})
