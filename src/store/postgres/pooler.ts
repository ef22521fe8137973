// Refuses a connection pooler that gives each transaction or statement another server process, such as PgBouncer in transaction mode.
// The store listens for events and prepares its statements, and both belong to one server process. With `notify: 'poll'` it does
// neither, and this check is not made.
//
// 1. Without a pooler, the server tells a new connection the id of its process. A pooler makes up an id, because it has no server
//    process for the connection yet. So if the id is right, there is no pooler, and the check costs one query.
// 2. Otherwise each of two open connections must stay with a server process of its own. A pooler in session mode does that.
import { RallyError } from '../../protocol/errors.ts'
import type { ConnectionLike, PoolLike } from './pool.ts'

/** A pool that is in use may take another process by chance. */
const TRIES = 3
/** The pool may have no second connection to give. */
const SECOND_CONNECTION_MS = 5_000

export async function refusePooler(pool: PoolLike, connection: ConnectionLike): Promise<void> {
  const id = await processOf(connection)
  if (connection.processID === id) return
  const second = await connectWithin(pool, SECOND_CONNECTION_MS)
  try {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if ((await processOf(connection)) !== id) throw refusal()
      if (second !== undefined && (await processOf(second)) === id) throw refusal()
    }
  } finally {
    second?.release()
  }
}

async function processOf(connection: ConnectionLike): Promise<number> {
  const { rows } = await connection.query({ text: 'SELECT pg_backend_pid() AS id' })
  return Number(rows[0]?.['id'])
}

/** Returns `undefined` after this time. A connection that comes later goes back to the pool. */
async function connectWithin(pool: PoolLike, ms: number): Promise<ConnectionLike | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  const connecting = pool.connect()
  const connection = await Promise.race([connecting, late]).finally(() => clearTimeout(timer))
  if (connection === undefined) {
    connecting.then(
      (unused) => unused.release(),
      () => {},
    )
  }
  // Without a listener, the error of a lost connection would end the process. Its query rejects too.
  connection?.on('error', () => {})
  return connection
}

function refusal(): RallyError {
  return new RallyError(
    'STORE_POOLER',
    'postgres(): the address is that of a connection pooler in transaction or statement mode, such as PgBouncer with ' +
      '`pool_mode = transaction`. LISTEN and prepared statements do not work there. Set ' +
      "`notify: 'poll'`, or connect to PostgreSQL itself, or to a pool with `pool_mode = session`.",
  )
}
