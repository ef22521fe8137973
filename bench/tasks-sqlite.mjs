// What the store asks of SQLite over many tasks' lives, recorded once, and the very same by hand on a file that is as it was then.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Driver from 'libsql'
import { sqlite } from 'mcp-rally/sqlite'
import { Engine } from './tasks-engine.mjs'

export async function sqliteSides() {
  const folder = mkdtempSync(join(tmpdir(), 'rally-bench-'))
  let files = 0
  const freshFile = () => join(folder, `${(files += 1)}.db`)
  const engine = new Engine(sqlite(freshFile()))
  /** By how many at a time there are. */
  const traces = new Map()
  return {
    name: 'SQLite',
    engine: (count, atATime) => engine.lives(count, atATime),
    /** Once for each size, before it is measured. */
    record: async (count, atATime) => {
      const trace = await record(freshFile(), count, atATime)
      traces.set(`${count} ${atATime}`, trace)
      return trace.length / count
    },
    prepare: (count, atATime) => prepare(freshFile(), traces.get(`${count} ${atATime}`)),
    close: async () => {
      await engine.close()
      rmSync(folder, { recursive: true })
    },
  }
}

/** Everything that is run on the connection, in its order. The driver does nothing on its own. */
async function record(file, count, atATime) {
  const trace = []
  const { prepare, exec } = Driver.prototype
  Driver.prototype.exec = function (sql) {
    trace.push({ sql })
    return exec.call(this, sql)
  }
  Driver.prototype.prepare = function (sql) {
    const statement = prepare.call(this, sql)
    const noting = (method) => (params) => {
      trace.push({ sql, method, params })
      return statement[method](params)
    }
    return { all: noting('all'), run: noting('run') }
  }
  try {
    const store = sqlite(file)
    const engine = new Engine(store)
    trace.length = 0
    await engine.lives(count, atATime)
    const lives = [...trace]
    await engine.close()
    return lives
  } finally {
    Object.assign(Driver.prototype, { prepare, exec })
  }
}

/** A file with the same tables and nothing in them, and what runs the trace on it: ids, numbers and times come out as they were. */
async function prepare(file, trace) {
  await sqlite(file).close()
  const database = new Driver(file)
  database.exec('PRAGMA synchronous = full')
  const statements = new Map()
  for (const { sql, method } of trace)
    if (method !== undefined && !statements.has(sql)) statements.set(sql, database.prepare(sql))
  return {
    run: () => {
      for (const { sql, method, params } of trace)
        if (method === undefined) database.exec(sql)
        else statements.get(sql)[method](params)
    },
    /** Whether all of it came to the same. */
    completed: () => {
      const [row] = database.prepare(`SELECT count(*) AS count FROM rally_task WHERE status = 'completed'`).all([])
      database.close()
      return row.count
    },
  }
}
