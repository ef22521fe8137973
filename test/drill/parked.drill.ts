// A hundred thousand parked tasks, and what they cost an instance.
import { afterAll, expect, test } from 'vitest'
import { useDatabase } from '../stores/database.ts'
import { Folder } from '../stores/folder.ts'
import { parkMany, type Parked } from './parking.ts'
import type { StoreTarget } from './workers.ts'

const COUNT = 100_000
const LOOKS = 2_000
const MEGABYTE = 1_000_000
const MOST_BYTES = 20 * MEGABYTE
/** As fast, on a machine that does other things too. */
const MOST_TIMES = 2

const database = useDatabase()
const folder = new Folder()
const rows: Record<string, object> = {}
afterAll(async () => {
  folder.remove()
  console.table(rows)
})

function megabytes(bytes: number): number {
  return Math.round(bytes / (MEGABYTE / 100)) / 100
}

function row({ few, many }: Parked): object {
  return {
    'tasks parked': COUNT,
    'held, MB more': megabytes(many.held - few.held),
    'process, MB more': megabytes(many.rss - few.rss),
    'tasks/get of 10, us': Math.round(few.median),
    'of all, us': Math.round(many.median),
  }
}

test.each<{ name: string; target: () => StoreTarget }>([
  { name: 'PostgreSQL', target: () => ({ url: database.url, schema: database.nextSchema() }) },
  { name: 'SQLite', target: () => ({ file: folder.file() }) },
])('a hundred thousand in $name', { timeout: 300_000 }, async ({ name, target }) => {
  const parked = await parkMany(target(), COUNT, LOOKS)
  rows[name] = row(parked)
  const { few, many } = parked
  expect(many.held - few.held).toBeLessThan(MOST_BYTES)
  expect(many.rss - few.rss).toBeLessThan(MOST_BYTES)
  expect(many.median / few.median).toBeLessThan(MOST_TIMES)
})
