// Records the statements that the store runs for many tasks, and repeats them by hand on a file in the same state.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Driver from 'libsql'
import { sqlite } from 'mcp-rally/sqlite'
import { Engine } from './tasks-engine.mjs'

/** Each measurement has a file of its own, with empty tables. */
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

/** Every statement on the connection, in order. The driver runs none by itself. */
async function record(file, count, atATime) {
  const trace = []
  const original = Object.getOwnPropertyDescriptors(Driver.prototype)
  Driver.prototype.exec = function recorded(sql) {
    trace.push({ sql })
    return original.exec.value.call(this, sql)
  }
  Driver.prototype.prepare = function recorded(sql) {
    const statement = original.prepare.value.call(this, sql)
    const recording = (method) => (params) => {
      trace.push({ sql, method, params })
      return statement[method](params)
    }
    return { all: recording('all'), run: recording('run') }
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

/** Runs the trace on a file in the same state, so that ids, numbers and times are the same. */
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
    /** How many tasks are completed. */
    completed: () => {
      const [row] = database.prepare(`SELECT count(*) AS count FROM rally_task WHERE status = 'completed'`).all([])
      database.close()
      return row.count
    },
  }
}
