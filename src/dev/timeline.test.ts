import { MemoryStore, rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { expect, test } from 'vitest'
import { timeline } from './timeline.ts'

test.each([
  { task: 'never', has: 'client' },
  { task: 'always', has: 'store' },
] as const)('a question of a tool that is $task a task waits at the $has', async ({ task, has }) => {
  const lines: string[] = []
  const observers = [timeline((line) => lines.push(line))]
  const app = rally({ name: 'shop', version: '1.0.0', store: new MemoryStore(), observers })
  app.tool('order', { task }, async (_args, io) => io.choose('drink', 'Which?', ['tea', 'coffee']))
  const client = await connect(app, { onElicit: () => ({ action: 'accept', content: { choice: 'tea' } }) })
  await client.callTool('order')
  await client.close()
  app.drain()
  await app.idle()
  expect(lines.filter((line) => line.includes('suspended')).join('\n')).toMatch(
    new RegExp(`^\\S+ order \\[.{4}\\] suspended: the ${has} has the question \\([\\d.]+ ms\\)$`),
  )
})
