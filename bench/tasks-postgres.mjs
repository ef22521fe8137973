// What the store asks of PostgreSQL in one task's life, recorded once, and the same by hand for as many lives as are wanted.
import { randomUUID } from 'node:crypto'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { Engine } from './tasks-engine.mjs'

const connections = 10

export async function postgresSides(url) {
  const engine = new Engine(postgres(url, { schema: 'engine', connections }))
  const statements = await record(url)
  const pool = new pg.Pool({ connectionString: url, max: connections })
  // Whoever is told of changes is told by hand, too.
  const [, channel] = /pg_notify\(\s*'([^']+)'/.exec(statements.map(({ text }) => text).join('\n'))
  const listener = new pg.Client(url)
  await listener.connect()
  await listener.query(`LISTEN "${channel}"`)
  return {
    name: 'PostgreSQL',
    statements: statements.length,
    engine: (count, atATime) => engine.lives(count, atATime),
    byHand: (count, atATime) => new ByHand(pool, statements).lives(count, atATime),
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
        const entry = { ...query, claims: 0 }
        asked.push(entry)
        const result = await pool.query(query)
        if (isClaim(query)) entry.claims = result.rows.length
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
  const from = asked.length
  await engine.lives(1, 1)
  const life = asked.slice(from)
  await engine.close()
  await pool.end()
  return life
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
  }

  async #life(id) {
    let times = 0
    for (const query of this.#statements) {
      times += query.claims
      if (isClaim(query)) await this.#claim(id, times, query)
      else await this.#ask(query, this.#valuesOf(id, query))
    }
    this.#taken.delete(id)
  }

  /** Where another's was taken up, that one finds it taken, and this one asks again until its own is. */
  async #claim(id, times, query) {
    do {
      const { rows } = await this.#ask(query, query.values)
      for (const row of rows) this.#taken.set(row.id, { times: this.#timesOf(row.id) + 1, fence: row.fence })
    } while (this.#timesOf(id) < times)
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
