// The other process of the followers drill: creates the tasks, and changes all of them when it is told to.
import { openStore } from './open-store.mjs'

const { store: where, count } = JSON.parse(process.env.OPTIONS)
const store = openStore(where)
const ids = Array.from({ length: count }, (_, i) => String(i).padStart(64, '0'))

async function forEach(run) {
  for (let from = 0; from < ids.length; from += 500) await Promise.all(ids.slice(from, from + 500).map(run))
}

const state = JSON.stringify({ text: 'x'.repeat(500) })
await forEach((id) =>
  store.tasks.create({
    id,
    owner: '',
    request: '{}',
    state,
    journal: '[]',
    message: undefined,
    pollMs: 1_000,
    ttlMs: null,
  }),
)
process.send({ done: 'created' })
process.on('message', async () => {
  await forEach((id) => store.tasks.change(id, {}, { message: 'Changed.' }))
  process.send({ done: 'changed' })
})
process.on('disconnect', () => process.exit())
