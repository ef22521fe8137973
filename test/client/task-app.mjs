// An app whose tools become tasks. Run with --stdio, it is served over the standard streams.
import { MemoryStore, ProtocolError, rally } from 'mcp-rally'
import { stdio } from 'mcp-rally/node'
import { z } from 'zod'

export function taskApp(store, options = {}, hold = async () => {}) {
  const app = rally({
    name: 'cloud',
    version: '1.0.0',
    keys: ['a secret of the tasks of the tests, long enough'],
    store,
    tasks: { pollMs: 200 },
    showErrors: true,
    ...options,
  })

  app.tool('provision_vm', { input: z.object({ name: z.string() }) }, async ({ name }, io) => {
    if (!(await io.confirm('cost', `${name} costs 4 EUR a day. Go ahead?`))) return 'Left as it was.'
    await io.detach()
    await io.step('create', async ({ progress }) => {
      progress(1, 2, `Making ${name}.`)
      await hold()
    })
    const region = await io.choose('region', `Where should ${name} run?`, ['eu-north', 'us-east'])
    return `${name} runs in ${region}`
  })

  // What the wire cannot say of a form: an answer that does not fit is asked for again, under another key.
  const even = z.object({
    count: z
      .number()
      .int()
      .refine((count) => count % 2 === 0, 'must be even'),
  })
  app.tool('pairs', { task: 'always', output: z.object({ pairs: z.number() }) }, async (_args, io) => {
    const [one, other] = await Promise.all([io.ask('one', 'How many?', even), io.ask('other', 'And then?', even)])
    return { pairs: (one.count + other.count) / 2 }
  })

  app.tool('fails', { task: 'always' }, () => {
    throw new Error('It is broken.')
  })
  app.tool('refuses', { task: 'always' }, () => {
    throw new ProtocolError(-32050, 'No quota.', { left: 0 })
  })
  app.tool('waits', { task: 'optional' }, async (_args, io) => String(await io.confirm('sure', 'Sure?')))
  return app
}

if (process.argv.includes('--stdio')) await stdio(taskApp(new MemoryStore()))
