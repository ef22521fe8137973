// Records the statements that the store runs for many tasks, and repeats them by hand on a file in the same state.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importBuilt } from '../dist.mjs'
import { Engine } from '../tasks-engine.mjs'

const { sqlite } = await importBuilt('sqlite.js')

/** As on PostgreSQL, so that a place is never what a task waits for. */
const TASKS = { concurrency: 256 }

const library = process.getBuiltinModule?.('node:sqlite')
/** The driver that the store uses in this runtime. */
const Driver = library === undefined ? (await import('libsql')).default : library.DatabaseSync

/** A statement of either driver, which gets its parameters in an array. */
function bound(statement) {
  if (library === undefined) return statement
  return { all: (params) => statement.all(...params), run: (params) => statement.run(...params) }
}

/** Each measurement has a file of its own, with empty tables. */
export function sqliteSides() {
  const folder = mkdtempSync(join(tmpdir(), 'rally-bench-'))
  let files = 0
  const freshFile = () => join(folder, `${(files += 1)}.db`)
  return {
    driver: library === undefined ? 'libsql' : 'node:sqlite',
    engine: () => new Engine(sqlite(freshFile()), TASKS),
    record: (lives, atATime) => record(freshFile(), lives, atATime),
    byHand: (trace) => byHand(freshFile(), trace),
    close: () => rmSync(folder, { recursive: true }),
  }
}

/** Every statement on the connection, in order. The driver runs none by itself. */
async function record(file, count, atATime) {
  const trace = []
  const { exec, prepare } = Driver.prototype
  Driver.prototype.exec = function recorded(sql) {
    trace.push({ sql })
    return exec.call(this, sql)
  }
  Driver.prototype.prepare = function recorded(sql) {
    const statement = bound(prepare.call(this, sql))
    const recording =
      (method) =>
      (...given) => {
        const params = Array.isArray(given[0]) ? given[0] : given
        trace.push({ sql, method, params })
        return statement[method](params)
      }
    return { all: recording('all'), run: recording('run') }
  }
  try {
    const engine = new Engine(sqlite(file), TASKS)
    trace.length = 0
    await engine.lives(count, atATime)
    const lives = [...trace]
    await engine.close()
    return lives
  } finally {
    Object.assign(Driver.prototype, { exec, prepare })
  }
}

/** Runs the trace on a file in the same state, so that ids, numbers and times are the same. */
async function byHand(file, trace) {
  await sqlite(file).close()
  const database = new Driver(file)
  database.exec('PRAGMA synchronous = full')
  const statements = new Map()
  for (const { sql, method } of trace)
    if (method !== undefined && !statements.has(sql)) statements.set(sql, bound(database.prepare(sql)))
  return {
    run: () => {
      for (const { sql, method, params } of trace)
        if (method === undefined) database.exec(sql)
        else statements.get(sql)[method](params)
    },
    /** How many tasks are completed. */
    completed: () => {
      const query = `SELECT count(*) AS count FROM rally_task WHERE status = 'completed'`
      const [row] = bound(database.prepare(query)).all([])
      database.close()
      return row.count
    },
  }
}
