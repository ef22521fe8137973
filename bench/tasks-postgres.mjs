// Records the statements that the store runs during one task's life, and repeats them by hand for any number of tasks.
import { randomUUID } from 'node:crypto'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { Engine } from './tasks-engine.mjs'

const connections = 10

export async function postgresSides(url) {
  const engine = new Engine(postgres(url, { schema: 'engine', connections }))
  const statements = await record(url)
  // With many tasks at a time, every claim of the engine finds one.
  const needed = statements.filter((query) => !isEmptyClaim(query))
  const ofLife = (atATime) => (atATime === 1 ? statements : needed)
  const pool = new pg.Pool({ connectionString: url, max: connections })
  // The server may stop before the last connection is closed.
  pool.on('error', () => {})
  // The engine listens for events, so the statements by hand have a listener too.
  const [, channel] = /pg_notify\(\s*'([^']+)'/.exec(statements.map(({ text }) => text).join('\n'))
  const listener = new pg.Client(url)
  await listener.connect()
  await listener.query(`LISTEN "${channel}"`)
  return {
    name: 'PostgreSQL',
    statements: (atATime) => ofLife(atATime).length,
    engine: (count, atATime) => engine.lives(count, atATime),
    byHand: (count, atATime) => new ByHand(pool, ofLife(atATime)).lives(count, atATime),
    /** How many tasks are not completed by hand. */
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

/** Records in a schema of its own, in which the statements are then repeated by hand. */
async function record(url) {
  const pool = new pg.Pool({ connectionString: url, max: connections + 1 })
  const queries = []
  const store = postgres(
    {
      query: async (query) => {
        const entry = { ...query, claims: 0, after: queries.filter(({ isDone }) => isDone) }
        queries.push(entry)
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
  queries.length = 0
  await engine.lives(1, 1)
  const life = [...queries]
  await engine.close()
  await pool.end()
  for (const query of life) query.after = query.after.filter((before) => !isEmptyClaim(before))
  return life
}

/** A claim that found no task. The engine does not wait for it. */
function isEmptyClaim(query) {
  return isClaim(query) && query.claims === 0
}

/** A claim names no task: it returns the one that it claimed. */
function isClaim({ text }) {
  return text.includes('SKIP LOCKED')
}

class ByHand {
  #pool
  #statements
  #recordedId
  /** How often each task was claimed, and the fence of the last claim. */
  #claimed = new Map()
  #emptyClaims = []

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
    await Promise.all(this.#emptyClaims)
  }

  async #life(id) {
    const done = new Map()
    let times = 0
    for (const query of this.#statements) {
      times += query.claims
      // Statements that ran in parallel do so here.
      for (const before of query.after) await done.get(before)
      if (isEmptyClaim(query)) this.#emptyClaims.push(this.#runClaim(query))
      else if (isClaim(query)) done.set(query, this.#claim(id, times, query))
      else done.set(query, this.#query(query, this.#valuesOf(id, query)))
    }
    await Promise.all(done.values())
    this.#claimed.delete(id)
  }

  /** A claim may return another task, which then need not be claimed by its own loop. Repeats until this task is claimed. */
  async #claim(id, times, query) {
    do await this.#runClaim(query)
    while (this.#timesOf(id) < times)
  }

  async #runClaim(query) {
    const { rows } = await this.#query(query, query.values)
    for (const row of rows) this.#claimed.set(row.id, { times: this.#timesOf(row.id) + 1, fence: row.fence })
  }

  #timesOf(id) {
    return this.#claimed.get(id)?.times ?? 0
  }

  #query({ name, text }, values) {
    return this.#pool.query({ name, text, values })
  }

  /** The recorded values, with this id and, if there was a fence, the current one. */
  #valuesOf(id, { values }) {
    if (values[0] !== this.#recordedId) return values
    const { fence } = this.#claimed.get(id) ?? {}
    const [, second, ...others] = values
    return values.length === 1
      ? [id]
      : [id, typeof second === 'number' && fence !== undefined ? fence : second, ...others]
  }
}
