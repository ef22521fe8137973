// The tables of a SQLite store, set up and brought up to date by whoever opens the file first.
import { RallyError } from '../../protocol/errors.ts'
import type { Database } from './driver.ts'
import { patiently } from './driver.ts'

/** Each makes the next version of the one before. What has been released is never changed here, only added to. */
export const UPGRADES: readonly string[] = [
  // Tasks. What changes often is apart from the long texts, so that a lease is renewed without writing those again. A task is due
  // once it is marked so: the index of those that are due then holds no others, however many wait for their time. Changes and claims
  // are counted, so that no number of a change and no fence is given twice.
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
  // The mailbox. A letter's arrival is never given again, so that whoever looks for new ones misses none.
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

/** Many processes may do this to one file at once: the first upgrades it, and the others find it done. */
export function upgrade(database: Database, upgrades: readonly string[] = UPGRADES): void {
  if (patiently(() => versionOf(database)) === upgrades.length) return
  patiently(() => database.exec('BEGIN IMMEDIATE'))
  try {
    const version = versionOf(database)
    if (version > upgrades.length) throw tooNew(version, upgrades.length)
    for (const sql of upgrades.slice(version)) database.exec(sql)
    database.exec('CREATE TABLE IF NOT EXISTS rally_schema (version INTEGER NOT NULL)')
    database.exec('DELETE FROM rally_schema')
    database.prepare('INSERT INTO rally_schema VALUES (?)').run([upgrades.length])
    database.exec('COMMIT')
  } catch (error) {
    if (database.inTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** 0 for a file that is no store yet. */
function versionOf(database: Database): number {
  const [table] = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'rally_schema'`).all([])
  if (table === undefined) return 0
  const [row] = database.prepare('SELECT version FROM rally_schema').all([]) as { version?: unknown }[]
  return Number(row?.version)
}

function tooNew(version: number, known: number): RallyError {
  return new RallyError(
    'STORE_SCHEMA',
    `The SQLite file is of version ${version}, and this mcp-rally knows it up to version ${known}: ` +
      'run the mcp-rally that wrote it or a newer one, or give another file.',
  )
}
