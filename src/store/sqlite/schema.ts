// The tables of a SQLite store. The first process that opens the file creates or upgrades them.
import { RallyError } from '../../protocol/errors.ts'
import type { SqliteDatabase } from './driver.ts'
import { retryWhileBusy } from './driver.ts'

/** Each entry upgrades the schema by one version. Never change a released entry: add another. */
export const UPGRADES: readonly string[] = [
  // Tasks. Columns that change often are apart from the long texts, so that renewing a lease does not rewrite those. A task that falls
  // due is marked with `is_due`, so that the index of due tasks contains no other, however many wait for a later time. `rally_count`
  // counts changes and claims, so that no change number and no fence is used twice.
  `CREATE TABLE rally_task (
     seq INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     owner TEXT NOT NULL,
     status TEXT NOT NULL,
     message TEXT,
     poll_ms INTEGER NOT NULL,
     ttl_ms INTEGER,
     created_at INTEGER NOT NULL,
     updated_at INTEGER NOT NULL,
     expires_at INTEGER,
     version INTEGER NOT NULL,
     fence INTEGER NOT NULL,
     lease_until INTEGER,
     due_at INTEGER,
     ready_at INTEGER GENERATED ALWAYS AS (coalesce(lease_until, due_at)) VIRTUAL,
     is_due INTEGER NOT NULL,
     change_number INTEGER NOT NULL
   );
   CREATE INDEX rally_task_of_owner ON rally_task (owner, created_at, id);
   CREATE INDEX rally_task_due ON rally_task (owner, ready_at) WHERE is_due = 1;
   CREATE INDEX rally_task_waiting ON rally_task (ready_at) WHERE is_due = 0 AND ready_at IS NOT NULL;
   CREATE INDEX rally_task_expiry ON rally_task (expires_at) WHERE expires_at IS NOT NULL;
   CREATE INDEX rally_task_change ON rally_task (change_number);
   CREATE TABLE rally_task_text (
     task INTEGER PRIMARY KEY,
     request TEXT NOT NULL,
     state TEXT NOT NULL,
     outcome TEXT
   );
   CREATE TABLE rally_task_entry (
     task INTEGER NOT NULL,
     number INTEGER NOT NULL,
     text TEXT NOT NULL,
     PRIMARY KEY (task, number)
   ) WITHOUT ROWID;
   CREATE TABLE rally_count (changes INTEGER NOT NULL, claims INTEGER NOT NULL);
   INSERT INTO rally_count VALUES (0, 0);`,
  // Single use.
  `CREATE TABLE rally_once (
     key TEXT PRIMARY KEY,
     note TEXT NOT NULL,
     fence TEXT NOT NULL,
     until INTEGER NOT NULL,
     record TEXT
   ) WITHOUT ROWID;
   CREATE INDEX rally_once_until ON rally_once (until);`,
  // The mailbox, an event in each row. Its `arrival` is never used again, so that a reader of new rows misses none.
  `CREATE TABLE rally_letter (
     arrival INTEGER PRIMARY KEY AUTOINCREMENT,
     box TEXT NOT NULL,
     number INTEGER NOT NULL,
     text TEXT NOT NULL,
     until INTEGER NOT NULL,
     UNIQUE (box, number)
   );
   CREATE INDEX rally_letter_until ON rally_letter (until);`,
]

/**
 * Columns that earlier versions neither know nor need. They are added without a new version of the schema, so processes of earlier
 * versions can open the file too, before and after. Each must be nullable, and in a table that all statements name the columns of.
 */
const ADDED_COLUMNS = [
  { table: 'rally_task', column: 'claimed_by', type: 'TEXT' },
  // Only while the task has not ended.
  { table: 'rally_task', column: 'group_name', type: 'TEXT' },
  { table: 'rally_task', column: 'group_limit', type: 'INTEGER' },
  // In place of `due_at`, for a task of a group that has no place.
  { table: 'rally_task', column: 'wanted_at', type: 'INTEGER' },
] as const

/** Created together with the columns. */
const ADDED_INDEXES = `
  CREATE INDEX IF NOT EXISTS rally_task_wanted ON rally_task (group_name, wanted_at) WHERE wanted_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS rally_task_place ON rally_task (group_name) WHERE group_name IS NOT NULL AND ready_at IS NOT NULL;`

/** Many processes may call this for one file at once: the first upgrades it, and the others find it upgraded. */
export function upgrade(database: SqliteDatabase, upgrades: readonly string[] = UPGRADES): void {
  if (retryWhileBusy(() => isUpToDate(database, upgrades))) return
  retryWhileBusy(() => database.exec('BEGIN IMMEDIATE'))
  try {
    const version = versionOf(database)
    if (version > upgrades.length) throw tooNew(version, upgrades.length)
    for (const sql of upgrades.slice(version)) database.exec(sql)
    database.exec('CREATE TABLE IF NOT EXISTS rally_schema (version INTEGER NOT NULL)')
    database.exec('DELETE FROM rally_schema')
    database.prepare('INSERT INTO rally_schema VALUES (?)').run([upgrades.length])
    const missing = missingColumns(database)
    for (const { table, column, type } of missing) database.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`)
    if (missing.length > 0) database.exec(ADDED_INDEXES)
    database.exec('COMMIT')
  } catch (error) {
    if (database.inTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** Throws if the file has no tables of this version. */
export function requireCurrent(database: SqliteDatabase, path: string): void {
  const version = retryWhileBusy(() => versionOf(database))
  if (version > UPGRADES.length) throw tooNew(version, UPGRADES.length)
  if (version === 0) throw new RallyError('STORE_PATH', `${path} is not a store: it has no tables of mcp-rally.`)
  if (isUpToDate(database)) return
  throw new RallyError(
    'STORE_SCHEMA',
    `${path} has the tables of an earlier version of mcp-rally. Start the app with this version first, which upgrades them.`,
  )
}

/** True if the tables are those of this version, so that nothing has to be changed. */
function isUpToDate(database: SqliteDatabase, upgrades: readonly string[] = UPGRADES): boolean {
  return versionOf(database) === upgrades.length && missingColumns(database).length === 0
}

/** None if their table does not exist either. */
function missingColumns(database: SqliteDatabase): readonly (typeof ADDED_COLUMNS)[number][] {
  const find = database.prepare('SELECT name FROM pragma_table_info(?)')
  return ADDED_COLUMNS.filter(({ table, column }) => {
    const names = (find.all([table]) as { name: string }[]).map(({ name }) => name)
    return names.length > 0 && !names.includes(column)
  })
}

/** Returns 0 for a file without these tables. */
function versionOf(database: SqliteDatabase): number {
  const [table] = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'rally_schema'`).all([])
  if (table === undefined) return 0
  const [row] = database.prepare('SELECT version FROM rally_schema').all([]) as { version?: unknown }[]
  return Number(row?.version)
}

function tooNew(version: number, known: number): RallyError {
  return new RallyError(
    'STORE_SCHEMA',
    `sqlite(): the file has schema version ${version}, this mcp-rally knows versions up to ${known}. ` +
      'Use the mcp-rally that wrote it, or a newer one, or another file.',
  )
}
