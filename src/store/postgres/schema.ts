// The tables of a PostgreSQL store. The first instance creates them, and the first instance of a newer version upgrades them.
//
// 1. One instance at a time changes the schema, in one transaction. The others wait, and find it changed.
// 2. An instance that finds the schema up to date needs no permission to change it.
// 3. A schema of a newer version is left alone.
// 4. What earlier versions neither know nor need is added without a new version, so that their instances can start beside newer ones.
import { hash } from 'node:crypto'
import { RallyError } from '../../protocol/errors.ts'
import type { ConnectionLike, NotifyMode, PoolLike } from './pool.ts'
import { refusePooler } from './pooler.ts'

/** How long to wait for another instance that changes the schema. */
const LOCK_MS = 120_000

/** Each entry upgrades the schema by one version. Never change a released entry: add another. */
const UPGRADES: readonly ((schema: string) => string)[] = [version1]

/** Rule 4. Nullable columns, and indexes. `group_name` is set until the task ends; `wanted_at` is in place of `due_at`, see groups.ts. */
function additions(schema: string): string {
  return `
    ALTER TABLE ${schema}.tasks ADD COLUMN IF NOT EXISTS claimed_by text,
      ADD COLUMN IF NOT EXISTS group_name text COLLATE "C",
      ADD COLUMN IF NOT EXISTS group_limit bigint,
      ADD COLUMN IF NOT EXISTS wanted_at bigint;
    CREATE INDEX IF NOT EXISTS tasks_created ON ${schema}.tasks (created_at);
    CREATE INDEX IF NOT EXISTS tasks_ready ON ${schema}.tasks (ready_at) WHERE ready_at IS NOT NULL;
    CREATE INDEX IF NOT EXISTS tasks_wanted ON ${schema}.tasks (group_name, wanted_at) WHERE wanted_at IS NOT NULL;
    CREATE INDEX IF NOT EXISTS ${LAST_ADDED} ON ${schema}.tasks (group_name) WHERE group_name IS NOT NULL AND ready_at IS NOT NULL;
  `
}

/** Where it exists, the others do too: they are added in one transaction. */
const LAST_ADDED = 'tasks_place'

export async function setUp(pool: PoolLike, name: string, notify: NotifyMode, mustExist = false): Promise<void> {
  const connection = await pool.connect()
  // The query on a lost connection rejects too. Without a listener, the error of the connection would end the process.
  connection.on('error', () => {})
  let failed = true
  try {
    if (notify === 'listen') await refusePooler(pool, connection)
    if (mustExist) await requireCurrent(connection, name)
    else if (!(await isUpToDate(connection, name))) await upgrade(connection, name)
    failed = false
  } finally {
    connection.release(failed)
  }
}

async function upgrade(connection: ConnectionLike, name: string): Promise<void> {
  const schema = `"${name}"`
  await requireUtf8(connection)
  // So that the statements after the lock see what was committed before it, whatever the database's default is.
  await connection.query({ text: 'BEGIN ISOLATION LEVEL READ COMMITTED' })
  await connection.query({
    text: 'SELECT pg_advisory_xact_lock($1::bigint)',
    values: [lockOf(name)],
    query_timeout: LOCK_MS,
  })
  const version = await versionOf(connection, name)
  if (!isCurrent(name, version)) {
    if (version === 0) {
      // Without IF NOT EXISTS: that needs the permission to create schemas even if the schema exists.
      const found = await connection.query({ text: 'SELECT 1 FROM pg_namespace WHERE nspname = $1', values: [name] })
      if (found.rows.length === 0) await connection.query({ text: `CREATE SCHEMA ${schema}` })
      await connection.query({ text: `CREATE TABLE ${schema}.version (version int NOT NULL)` })
      await connection.query({ text: `INSERT INTO ${schema}.version VALUES (0)` })
    }
    for (const next of UPGRADES.slice(version)) await connection.query({ text: next(schema) })
    await connection.query({ text: `UPDATE ${schema}.version SET version = $1`, values: [UPGRADES.length] })
  }
  if (!(await hasAdditions(connection, name))) await connection.query({ text: additions(schema) })
  await connection.query({ text: 'COMMIT' })
}

async function requireCurrent(connection: ConnectionLike, name: string): Promise<void> {
  const version = await versionOf(connection, name)
  if (isCurrent(name, version) && (await hasAdditions(connection, name))) return
  throw new RallyError(
    'STORE_SCHEMA',
    version === 0
      ? `postgres(): the database has no tables of mcp-rally in the schema "${name}". Is it the right database, and the right schema?`
      : `postgres(): the schema "${name}" has the tables of an earlier version. Start the app with this version first, which upgrades them.`,
  )
}

async function isUpToDate(connection: ConnectionLike, name: string): Promise<boolean> {
  return isCurrent(name, await versionOf(connection, name)) && (await hasAdditions(connection, name))
}

async function hasAdditions(connection: ConnectionLike, name: string): Promise<boolean> {
  return hasRelation(connection, name, LAST_ADDED)
}

/** Reads the catalog's tables, because a failed lookup by name may be cached. */
async function hasRelation(connection: ConnectionLike, schema: string, relation: string): Promise<boolean> {
  const { rows } = await connection.query({
    text: `SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2`,
    values: [schema, relation],
  })
  return rows.length > 0
}

/** Returns 0 if the schema has no tables. */
async function versionOf(connection: ConnectionLike, name: string): Promise<number> {
  if (!(await hasRelation(connection, name, 'version'))) return 0
  const read = await connection.query({ text: `SELECT version FROM "${name}".version` })
  return Number(read.rows[0]?.['version'])
}

function isCurrent(name: string, version: number): boolean {
  if (version <= UPGRADES.length) return version === UPGRADES.length
  throw new RallyError(
    'STORE_SCHEMA',
    `postgres(): the schema "${name}" has version ${version}, this mcp-rally knows versions up to ${UPGRADES.length}. ` +
      'Update mcp-rally, or set the option `schema` to another name.',
  )
}

async function requireUtf8(connection: ConnectionLike): Promise<void> {
  const { rows } = await connection.query({ text: `SELECT current_setting('server_encoding') AS encoding` })
  const encoding = rows[0]?.['encoding']
  if (encoding === 'UTF8') return
  throw new RallyError(
    'STORE_SCHEMA',
    `postgres(): the encoding of the database must be UTF8, got ${String(encoding)}. ` +
      `Create a database with ENCODING 'UTF8'.`,
  )
}

/** The number of the advisory lock. Each schema has its own. */
function lockOf(name: string): string {
  return Buffer.from(hash('sha256', `mcp-rally schema ${name}`, 'hex'), 'hex')
    .readBigInt64BE()
    .toString()
}

/**
 * Times are milliseconds since 1970. `lease_until` is set while a worker has a lease. `due_at` is when the task falls due after that. A
 * task with neither has no `ready_at`, so it is not in the index that claims read. The journal of a task is the column `journal`,
 * followed by the entries with numbers from `journal_from` + 1 to `journal_to`. No fence is used twice. `letters` is the mailbox.
 *
 * `fillfactor`: tasks that are created together are changed together. So their page needs room for a second version of each: a version
 * that moves to another page needs entries in all indexes, and is written to the log as a whole.
 */
function version1(schema: string): string {
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
    ) WITH (fillfactor = 40);
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
