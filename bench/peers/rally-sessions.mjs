// Rally for the memory of sessions: as many of them may wait as are measured, however busy the machine is.
import { importBuilt } from '../dist.mjs'
import { announce } from './announce.mjs'

const { rally } = await importBuilt('index.js')
const { serve } = await importBuilt('node.js')

const keys = ['a bench key of at least thirty-two bytes']
const app = rally({ name: 'bench', version: '1.0.0', keys, limits: { maxStreams: 10_000 } })
const schema = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] }
const input = { type: 'object', properties: { env: { type: 'string' } }, required: ['env'] }

app.tool('deploy', { input, asks: { confirm: schema } }, async ({ env }, io) => {
  const { confirm } = await io.ask('confirm', `Deploy to ${env}?`)
  return confirm ? `Deployed to ${env}` : 'Left as it was.'
})

const { port } = await serve(app, { port: 0, maxInFlight: 10_000, maxLagMs: 60_000 })
announce(port)
