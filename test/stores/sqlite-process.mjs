// A process that does one thing with a SQLite file, by the options in OPTIONS, and says how far it is.
import { sqlite } from 'mcp-rally/sqlite'

const { file, role, name } = JSON.parse(process.env.OPTIONS)

const kept = { owner: name, request: '{}', state: '{}', journal: '["first"]' }
const task = (id) => ({ id, ...kept, message: undefined, pollMs: 1_000, ttlMs: null })

const roles = {
  /** Opens the file together with others, and closes it. */
  async open() {
    const store = sqlite(file)
    process.send({ opened: (await store.tasks.create(task('the same'))).owner })
    await store.close()
  },

  /** Writes without end, and says what has been acknowledged. */
  async write() {
    const store = sqlite(file)
    for (let n = 0; ; n += 1) {
      const id = `${name}-${n}`
      await Promise.all([store.tasks.create(task(id)), store.mailbox.leave(id, 1, 'letter', 600_000)])
      process.send({ made: id })
      const claimed = await store.tasks.claim({ after: '', leaseMs: 600_000 })
      for (let entry = 0; entry < 5; entry += 1) {
        await store.tasks.append(claimed, String(entry))
        process.send({ appended: claimed.id, entry })
      }
      await store.tasks.change(claimed.id, { fence: claimed.fence }, { release: true, dueMs: null, message: 'parked' })
      process.send({ parked: claimed.id })
    }
  },

  /** Takes all there is to take. */
  async claim() {
    const store = sqlite(file)
    const taken = []
    for (;;) {
      const claims = Array.from({ length: 4 }, () => store.tasks.claim({ after: '', leaseMs: 600_000 }))
      const some = (await Promise.all(claims)).filter(Boolean)
      if (some.length === 0) break
      taken.push(...some.map(({ id }) => id))
    }
    process.send({ taken })
    await store.close()
  },

  /** Tells what it hears of, until it is told to stop; it closes nothing. */
  watch() {
    const store = sqlite(file, { pollMs: 5 })
    store.tasks.watch((news) => process.send({ news }))
    store.mailbox.watch('box', () => process.send({ news: { type: 'letter' } }))
    process.send({ watching: true })
    process.once('message', () => process.disconnect())
  },
}

await roles[role]()
