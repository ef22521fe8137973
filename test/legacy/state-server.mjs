// One instance of a fleet that shares keys and a mailbox. It tells the test each effect of its steps.
import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { z } from 'zod'
import { FileMailbox } from './file-mailbox.mjs'

const { keys, folder } = JSON.parse(process.env.OPTIONS)

/** Resolves once the message is out of this process, so that no way of ending it takes it back. */
const say = (message) => new Promise((resolve) => process.send(message, resolve))

const app = rally({ name: 'fleet', version: '1.0.0', keys, legacy: { mailbox: new FileMailbox(folder) } })

app.tool('order', { input: z.object({ title: z.string() }) }, async ({ title }, io) => {
  const step = (key) =>
    io.step(key, ({ idempotencyKey }) => say({ effect: key, key: idempotencyKey, pid: process.pid }))
  await step('reserve')
  const { copies } = await io.ask('copies', `How many of ${title}?`, z.object({ copies: z.int() }))
  io.progress(1, 2, 'halfway')
  await step('charge')
  const [gift, said] = await Promise.all([
    io.confirm('gift', 'Is it a gift?'),
    io.ask('to', 'To whom?', z.object({ name: z.string() })),
  ])
  await step('ship')
  return `${copies} of ${title} to ${said.name}${gift ? ', wrapped' : ''}.`
})

const gates = new Set()
process.on('message', ({ open }) => {
  if (open === undefined) return
  for (const gate of gates) gate()
  gates.clear()
})

/** Goes on after its question when the test says so, and never on an instance that is killed before. */
app.tool('slow', {}, async (_args, io) => {
  const sure = await io.confirm('sure', 'Sure?')
  await io.step('work', async ({ idempotencyKey }) => {
    await say({ effect: 'work', key: idempotencyKey, pid: process.pid })
    await new Promise((resolve) => void gates.add(resolve))
  })
  return sure ? 'Worked.' : 'Rested.'
})

const { port } = await serve(app, { port: 0 })
await say({ port, pid: process.pid })
process.on('disconnect', () => process.exit())
