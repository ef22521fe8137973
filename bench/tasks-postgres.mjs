// What the store asks of PostgreSQL in one task's life, recorded once, and the same by hand for as many lives as are wanted.
import { randomUUID } from 'node:crypto'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { Engine } from './tasks-engine.mjs'

const connections = 10

export async function postgresSides(url) {
  const engine = new Engine(postgres(url, { schema: 'engine', connections }))
  const statements = await record(url)
  // With many at a time, the engine finds something whenever it looks for work.
  const needed = statements.filter((query) => !isVain(query))
  const ofLife = (atATime) => (atATime === 1 ? statements : needed)
  const pool = new pg.Pool({ connectionString: url, max: connections })
  // The server may go before the last of them has.
  pool.on('error', () => {})
  // Whoever is told of changes is told by hand, too.
  const [, channel] = /pg_notify\(\s*'([^']+)'/.exec(statements.map(({ text }) => text).join('\n'))
  const listener = new pg.Client(url)
  await listener.connect()
  await listener.query(`LISTEN "${channel}"`)
  return {
    name: 'PostgreSQL',
    statements: (atATime) => ofLife(atATime).length,
    engine: (count, atATime) => engine.lives(count, atATime),
    byHand: (count, atATime) => new ByHand(pool, ofLife(atATime)).lives(count, atATime),
    /** How many of those by hand have not come to their end. */
    unfinished: async () => {
      const { rows } = await pool.query(`SELECT count(*)::int AS count FROM by_hand.tasks WHERE status <> 'completed'`)
      return rows[0].count
    },
    close: async () => {
      await engine.close()
      await pool.end()
      await listener.end()
    },
  }
}

/** In a schema of its own, which is where they are done by hand then. */
async function record(url) {
  const pool = new pg.Pool({ connectionString: url, max: connections + 1 })
  const asked = []
  const store = postgres(
    {
      query: async (query) => {
        const entry = { ...query, claims: 0, after: asked.filter(({ isDone }) => isDone) }
        asked.push(entry)
        const result = await pool.query(query)
        if (isClaim(query)) entry.claims = result.rows.length
        entry.isDone = true
        return result
      },
      connect: () => pool.connect(),
      on: (event, listener) => pool.on(event, listener),
      removeListener: (event, listener) => pool.removeListener(event, listener),
    },
    { schema: 'by_hand' },
  )
  const engine = new Engine(store)
  await engine.lives(20, 1)
  asked.length = 0
  await engine.lives(1, 1)
  const life = [...asked]
  await engine.close()
  await pool.end()
  for (const query of life) query.after = query.after.filter((before) => !isVain(before))
  return life
}

/** A look for work that found none: nobody waits for it. */
function isVain(query) {
  return isClaim(query) && query.claims === 0
}

/** The one statement that names no task, and says which one it took up. */
function isClaim({ text }) {
  return text.includes('SKIP LOCKED')
}

class ByHand {
  #pool
  #statements
  #recordedId
  /** How often somebody has taken up each task, and the fence of the last time. */
  #taken = new Map()
  #vain = []

  constructor(pool, statements) {
    this.#pool = pool
    this.#statements = statements
    this.#recordedId = statements.find(({ text }) => text.includes('INSERT INTO')).values[0]
  }

  async lives(count, atATime) {
    let left = count
    const some = async () => {
      while (left > 0) {
        left -= 1
        await this.#life(randomUUID().padEnd(this.#recordedId.length, 'x'))
      }
    }
    await Promise.all(Array.from({ length: atATime }, some))
    await Promise.all(this.#vain)
  }

  async #life(id) {
    const done = new Map()
    let times = 0
    for (const query of this.#statements) {
      times += query.claims
      // What ran side by side does so here.
      for (const before of query.after) await done.get(before)
      if (isVain(query)) this.#vain.push(this.#look(query))
      else if (isClaim(query)) done.set(query, this.#claim(id, times, query))
      else done.set(query, this.#ask(query, this.#valuesOf(id, query)))
    }
    await Promise.all(done.values())
    this.#taken.delete(id)
  }

  /** Where another's was taken up, that one finds it taken, and this one asks again until its own is. */
  async #claim(id, times, query) {
    do await this.#look(query)
    while (this.#timesOf(id) < times)
  }

  async #look(query) {
    const { rows } = await this.#ask(query, query.values)
    for (const row of rows) this.#taken.set(row.id, { times: this.#timesOf(row.id) + 1, fence: row.fence })
  }

  #timesOf(id) {
    return this.#taken.get(id)?.times ?? 0
  }

  #ask({ name, text }, values) {
    return this.#pool.query({ name, text, values })
  }

  /** What was recorded, with this id and, where one was given, the fence that it has now. */
  #valuesOf(id, { values }) {
    if (values[0] !== this.#recordedId) return values
    const { fence } = this.#taken.get(id) ?? {}
    const [, second, ...others] = values
    return values.length === 1
      ? [id]
      : [id, typeof second === 'number' && fence !== undefined ? fence : second, ...others]
  }
}
