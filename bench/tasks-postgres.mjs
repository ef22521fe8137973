// Records the statements that the store runs during one task's life, and repeats them by hand for any number of tasks. By hand, each
// statement is for one task: what the store gains by grouping is part of the comparison.
import { randomUUID } from 'node:crypto'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { Engine } from './tasks-engine.mjs'

/** The statements by hand, with the statements of a life that is recorded first. */
export async function byHand({ url, connections, index }) {
  const statements = await record(url, connections, `process_${index}`)
  // As the store sets up the connections of its own pool.
  const options = '-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off'
  const pool = new pg.Pool({ connectionString: url, max: connections, options })
  // The server may stop before the last connection is closed.
  pool.on('error', () => {})
  const lives = new ByHand(pool, statements)
  return { life: () => lives.life() }
}

/** Records in a schema of its own, in which the statements are then repeated by hand. */
async function record(url, connections, schema) {
  const pool = new pg.Pool({ connectionString: url, max: connections + 1 })
  const queries = []
  const store = postgres(
    {
      query: (query) => {
        queries.push(query)
        return pool.query(query)
      },
      connect: () => pool.connect(),
      on: (event, listener) => pool.on(event, listener),
      removeListener: (event, listener) => pool.removeListener(event, listener),
    },
    { schema },
  )
  const engine = new Engine(store)
  await engine.lives(20, 1)
  queries.length = 0
  await engine.lives(1, 1)
  // The task is claimed when it is created, and with its answer. A worker that polls may look for others.
  const life = queries.filter(({ text }) => !text.includes('SKIP LOCKED') && !text.includes('pg_notify'))
  await engine.close()
  await pool.end()
  return life
}

class ByHand {
  #pool
  #statements
  #recordedId

  constructor(pool, statements) {
    this.#pool = pool
    this.#statements = statements
    const create = statements.find(({ text }) => text.includes('INSERT INTO'))
    this.#recordedId = create.values[0][0]
  }

  async life() {
    const id = randomUUID().padEnd(this.#recordedId.length, 'x')
    let fence
    for (const { name, text, values } of this.#statements) {
      const { rows } = await this.#pool.query({ name, text, values: this.#valuesOf(id, fence, values) })
      if (rows.length === 0) throw new Error(`By hand, every statement should find its task: ${text}`)
      fence = rows[0].fence ?? fence
    }
  }

  /** The recorded values, with this id. The second array of a write holds the fence, if the write has one. */
  #valuesOf(id, fence, values) {
    const [ids, second, ...others] = values
    if (ids?.[0] !== this.#recordedId) return values
    const fences = typeof second?.[0] === 'number' ? [fence] : second
    return values.length === 1 ? [[id]] : [[id], fences, ...others]
  }
}
