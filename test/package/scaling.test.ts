// docs/scaling.md quotes what bench/scaling.mjs computes from recorded costs.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './consumer.ts'

test('docs/scaling.md is up to date, or `node bench/scaling.mjs --update` makes it so', async () => {
  const { freshPage } = (await import(join(ROOT, 'bench/scaling.mjs'))) as { freshPage: () => string }
  const page = readFileSync(join(ROOT, 'docs/scaling.md'), 'utf8')
  expect(page).toBe(freshPage())
  // What the page says below the tables.
  expect(lostIn(page, 'deploys')).toEqual([0, 0, 0, 0])
  expect(lostIn(page, 'rotations').map((flows) => flows > 0)).toEqual([false, true, true, true])
})

/** The third column of the table. */
function lostIn(page: string, name: string): number[] {
  const [, table = ''] = new RegExp(`<!-- ${name} -->\\n\\n([^]*?)\\n\\n<!-- end -->`).exec(page) ?? []
  const rows = table.split('\n').slice(2)
  return rows.map((row) => Number(row.split('|')[3]?.trim().replaceAll(',', '')))
}
