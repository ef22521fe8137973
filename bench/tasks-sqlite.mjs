// What the store asks of SQLite over many tasks' lives, recorded once, and the very same by hand on a file that is as it was then.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Driver from 'libsql'
import { sqlite } from 'mcp-rally/sqlite'
import { Engine } from './tasks-engine.mjs'

/** Each measurement has a file of its own, with the same tables and nothing in them. */
export function sqliteSides() {
  const folder = mkdtempSync(join(tmpdir(), 'rally-bench-'))
  let files = 0
  const freshFile = () => join(folder, `${(files += 1)}.db`)
  return {
    name: 'SQLite',
    engine: () => new Engine(sqlite(freshFile())),
    record: (lives, atATime) => record(freshFile(), lives, atATime),
    byHand: (trace) => byHand(freshFile(), trace),
    close: () => rmSync(folder, { recursive: true }),
  }
}

/** Everything that is run on the connection, in its order. The driver does nothing on its own. */
async function record(file, count, atATime) {
  const trace = []
  const original = Object.getOwnPropertyDescriptors(Driver.prototype)
  Driver.prototype.exec = function noted(sql) {
    trace.push({ sql })
    return original.exec.value.call(this, sql)
  }
  Driver.prototype.prepare = function noted(sql) {
    const statement = original.prepare.value.call(this, sql)
    const noting = (method) => (params) => {
      trace.push({ sql, method, params })
      return statement[method](params)
    }
    return { all: noting('all'), run: noting('run') }
  }
  try {
    const engine = new Engine(sqlite(file))
    trace.length = 0
    await engine.lives(count, atATime)
    const lives = [...trace]
    await engine.close()
    return lives
  } finally {
    Object.defineProperties(Driver.prototype, original)
  }
}

/** What runs the trace on a file that is as it was then: ids, numbers and times come out the same. */
async function byHand(file, trace) {
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
