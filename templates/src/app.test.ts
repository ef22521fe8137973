import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accept, harsh } from 'mcp-rally/testing'
import { app } from './app.ts'

// harsh runs the tool as the worst client and fleet would: restarts, late and wrong answers, every pass from its top.
test('a coffee is ordered once, in the size that the user chose', async () => {
  const { result, effects } = await harsh(app, 'order_coffee', {
    args: { drink: 'espresso' },
    answer: () => accept({ size: 'large' }),
  })
  assert.deepEqual(effects, ['order'])
  assert.match(JSON.stringify(result?.content), /one large espresso/)
})
