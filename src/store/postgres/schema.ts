// The tables of the PostgreSQL store: made by the first instance that comes, and brought up to date by the first that knows more.
//
// 1. A schema is changed in one transaction, by one instance at a time: the others wait, and find it done.
// 2. Who only finds it done needs no right to change it.
// 3. A schema of a later version is not touched.
import { hash } from 'node:crypto'
import { RallyError } from '../../protocol/errors.ts'
import type { ConnectionLike, PoolLike } from './pool.ts'

/** What leads from each version to the next. Never change one that has been published: add another. */
const UPGRADES: readonly ((schema: string) => string)[] = [first]

export async function setUp(pool: PoolLike, name: string): Promise<void> {
  const connection = await pool.connect()
  // A connection that is lost also rejects what was asked of it; unheard, its error would end the process.
  connection.on('error', () => {})
  let failed = true
  try {
    if (!isCurrent(name, await versionOf(connection, name))) await upgrade(connection, name)
    failed = false
  } finally {
    connection.release(failed)
  }
}

async function upgrade(connection: ConnectionLike, name: string): Promise<void> {
  const schema = `"${name}"`
  await requireUtf8(connection)
  // So that what comes after the lock sees what came before it, whatever the database's default.
  await connection.query({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED' })
  await connection.query({
    text: 'SELECT pg_advisory_xact_lock($1::bigint)',
    values: [lockOf(name)],
    query_timeout: LOCK_MS,
  })
  const version = await versionOf(connection, name)
  if (!isCurrent(name, version)) {
    if (version === 0) {
      // Asked first: a schema that is there already may be used by one that may not make schemas.
      const there = await connection.query({ text: 'SELECT 1 FROM pg_namespace WHERE nspname = $1', values: [name] })
      if (there.rows.length === 0) await connection.query({ text: `CREATE SCHEMA ${schema}` })
      await connection.query({ text: `CREATE TABLE ${schema}.version (version int NOT NULL)` })
      await connection.query({ text: `INSERT INTO ${schema}.version VALUES (0)` })
    }
    for (const next of UPGRADES.slice(version)) await connection.query({ text: next(schema) })
    await connection.query({ text: `UPDATE ${schema}.version SET version = $1`, values: [UPGRADES.length] })
  }
  await connection.query({ text: 'COMMIT' })
}

const LOCK_MS = 120_000

/** 0 where nothing is there yet. From the catalog's tables: a name that was not found once may be remembered as such. */
async function versionOf(connection: ConnectionLike, name: string): Promise<number> {
  const { rows } = await connection.query({
    text: `SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2`,
    values: [name, 'version'],
  })
  if (rows.length === 0) return 0
  const read = await connection.query({ text: `SELECT version FROM "${name}".version` })
  return Number(read.rows[0]?.['version'])
}

function isCurrent(name: string, version: number): boolean {
  if (version <= UPGRADES.length) return version === UPGRADES.length
  throw new RallyError(
    'STORE_SCHEMA',
    `The schema "${name}" of the database is of version ${version}, and this mcp-rally knows it up to ` +
      `version ${UPGRADES.length}: update mcp-rally, or give another \`schema\`.`,
  )
}

async function requireUtf8(connection: ConnectionLike): Promise<void> {
  const { rows } = await connection.query({ text: `SELECT current_setting('server_encoding') AS encoding` })
  const encoding = rows[0]?.['encoding']
  if (encoding === 'UTF8') return
  throw new RallyError(
    'STORE_SCHEMA',
    `The database has the encoding ${String(encoding)}, which cannot hold every text: give one made with ENCODING 'UTF8'.`,
  )
}

/** A number of this schema's own among all that lock by number in the database. */
function lockOf(name: string): string {
  return Buffer.from(hash('sha256', `mcp-rally schema ${name}`, 'hex'), 'hex')
    .readBigInt64BE()
    .toString()
}

/**
 * Times are milliseconds since 1970. A task that is held has a `lease_until`; `due_at` is when it falls due once nobody holds it.
 * One that nobody has to take up has no `ready_at`, and costs those that look for one nothing. A task's journal is what is in its
 * row and, after that, the entries numbered above `journal_from`, up to `journal_to`. A fence is never given twice.
 */
function first(schema: string): string {
  return `
    CREATE SEQUENCE ${schema}.fences;
    CREATE TABLE ${schema}.tasks (
      id text COLLATE "C" PRIMARY KEY,
      owner text COLLATE "C" NOT NULL,
      request text NOT NULL,
      state text NOT NULL,
      status text NOT NULL,
      message text,
      poll_ms bigint NOT NULL,
      ttl_ms bigint,
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL,
      expires_at bigint,
      outcome text,
      version bigint NOT NULL,
      fence bigint NOT NULL,
      lease_until bigint,
      due_at bigint,
      ready_at bigint GENERATED ALWAYS AS (coalesce(lease_until, due_at)) STORED,
      journal text NOT NULL,
      journal_from bigint NOT NULL,
      journal_to bigint NOT NULL
    ) WITH (fillfactor = 70);
    CREATE INDEX tasks_due ON ${schema}.tasks (owner, ready_at) WHERE ready_at IS NOT NULL;
    CREATE INDEX tasks_of_owner ON ${schema}.tasks (owner, created_at, id);
    CREATE INDEX tasks_expiry ON ${schema}.tasks (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE ${schema}.journal_entries (
      task text COLLATE "C" NOT NULL REFERENCES ${schema}.tasks ON DELETE CASCADE,
      number bigint NOT NULL,
      text text NOT NULL,
      PRIMARY KEY (task, number)
    );
    CREATE TABLE ${schema}.once (
      key text COLLATE "C" PRIMARY KEY,
      note text NOT NULL,
      fence bigint NOT NULL,
      record text,
      expires_at bigint NOT NULL
    ) WITH (fillfactor = 70);
    CREATE INDEX once_expiry ON ${schema}.once (expires_at);
    CREATE TABLE ${schema}.letters (
      box text COLLATE "C" NOT NULL,
      number bigint NOT NULL,
      text text NOT NULL,
      expires_at bigint NOT NULL,
      PRIMARY KEY (box, number)
    );
    CREATE INDEX letters_expiry ON ${schema}.letters (expires_at);
  `
}
