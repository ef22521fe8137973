// A pool that notes what is asked of it.
import type { PoolLike, QueryLike } from 'mcp-rally/postgres'

export interface RecordedPool extends PoolLike {
  /** All that was asked since it was last emptied. */
  readonly asked: QueryLike[]
}

export function recordedPool(pool: PoolLike): RecordedPool {
  const asked: QueryLike[] = []
  return {
    asked,
    query: (query) => {
      asked.push(query)
      return pool.query(query)
    },
    connect: () => pool.connect(),
    on: (event, listener) => pool.on(event, listener),
    removeListener: (event, listener) => pool.removeListener(event, listener),
  }
}

/** What is asked while this runs. */
export async function askedBy(pool: RecordedPool, run: () => Promise<unknown>): Promise<QueryLike[]> {
  pool.asked.length = 0
  await run()
  return [...pool.asked]
}
