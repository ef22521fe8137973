// The picture of the README is what its script draws.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './consumer.ts'

test('docs/pictures/flow.svg is up to date, or `node scripts/draw-flow.mjs` makes it so', async () => {
  const { draw } = (await import(join(ROOT, 'scripts/draw-flow.mjs'))) as { draw: () => string }
  expect(readFileSync(join(ROOT, 'docs/pictures/flow.svg'), 'utf8')).toBe(draw())
  expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toContain('](docs/pictures/flow.svg)')
})
