// PostgreSQL goes away for a moment: restarted where it is ours, by a command where one was given, and else with everybody thrown out.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import pg from 'pg'
import { isOwnServer, type RunningDatabase } from '../stores/database.ts'

export async function outage(database: RunningDatabase): Promise<void> {
  const command = process.env['RALLY_DRILL_RESTART']
  if (isOwnServer) await database.restart()
  else if (command !== undefined) await promisify(execFile)('sh', ['-c', command])
  else await throwOut(database.url)
}

async function throwOut(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
  await client.end()
}
