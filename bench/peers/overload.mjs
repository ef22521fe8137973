// The server of the overload run, with its defaults.
import { pbkdf2Sync } from 'node:crypto'
import { importBuilt } from '../dist.mjs'
import { announce } from './announce.mjs'

const { rally } = await importBuilt('index.js')
const { serve } = await importBuilt('node.js')

const app = rally({ name: 'bench', version: '1.0.0', keys: ['a bench key of at least thirty-two bytes'] })
let free = 8
const waiting = []

const derive = (rounds) => pbkdf2Sync('a password', 'a salt', rounds, 32, 'sha256').toString('hex')
// How many rounds this machine does in a millisecond. The fastest of several, because others may use the machine too.
const perMillisecond = Math.max(...Array.from({ length: 9 }, measured))
const compute = (milliseconds) => async () => derive(Math.round(milliseconds * perMillisecond))
app.tool('compute', {}, compute(2))
app.tool('crunch', {}, compute(10))
// As if behind a pool of connections.
app.tool('wait', {}, async () => {
  if (free === 0) await new Promise((resolve) => waiting.push(resolve))
  else free--
  await new Promise((resolve) => setTimeout(resolve, 5))
  const next = waiting.shift()
  if (next) next()
  else free++
  return 'waited'
})

const { port } = await serve(app, { port: 0 })
announce(port)

function measured() {
  const rounds = 20_000
  const began = performance.now()
  derive(rounds)
  return rounds / (performance.now() - began)
}
