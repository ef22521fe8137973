// docs/benchmarks.md, its plots and the figures of the README are written from bench/results-all.json. Nothing is measured here.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { ROOT } from './consumer.ts'

interface PageModule {
  pageOf(recorded: unknown, tasks: unknown): { page: string; pictures: Record<string, string> }
}

interface ReadmeModule {
  withFigures(readme: string, recorded: unknown): string
}

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const recorded: unknown = JSON.parse(read('bench/results-all.json'))
const tasks: unknown = JSON.parse(read('bench/results-tasks.json'))

let written: PageModule & ReadmeModule
beforeAll(async () => {
  const page = (await import(join(ROOT, 'bench/all/page.mjs'))) as PageModule
  const readme = (await import(join(ROOT, 'bench/all/readme.mjs'))) as ReadmeModule
  written = { ...page, ...readme }
})

test('docs/benchmarks.md is as recorded, or `npm run bench -- all --only page` makes it so', () => {
  expect(read('docs/benchmarks.md')).toBe(written.pageOf(recorded, tasks).page)
})

test('the plots are as recorded, and there are no others', () => {
  const { pictures } = written.pageOf(recorded, tasks)
  const files = readdirSync(join(ROOT, 'docs/pictures')).filter((name) => name.startsWith('bench-'))
  expect(files.toSorted()).toEqual(Object.keys(pictures).toSorted())
  for (const [name, svg] of Object.entries(pictures)) expect(read(`docs/pictures/${name}`)).toBe(svg)
})

test('the figures of the README are as recorded', () => {
  const readme = read('README.md')
  expect(readme).toBe(written.withFigures(readme, recorded))
})

test('the page says which goals do not hold, and which peers were not measured', () => {
  const short = { date: '2026-01-01', commit: 'abc', node: 'v20.0.0', cpu: 'a CPU', cores: 2, load: 0.1 }
  const peer = { perSecond: 1000, cpuMicroseconds: 10 }
  const results = ['plain', 'sealed'].flatMap((scenario) =>
    [32, 1].map((connections) => ({
      scenario,
      connections,
      peers: { rally: peer, byHand: peer },
      ratios: { 'rally/byHand': connections === 32 ? 0.99 : 0.91 },
    })),
  )
  const failures = { fastmcp: 'it said nothing for 30000 ms' }
  const calls = { ...short, rounds: 9, milliseconds: 700, versions: { official: '2.4.0' }, failures, results }
  const { page } = written.pageOf({ calls }, {})
  expect(page).toMatch(/plain calls, 32 connections +\| 1\.0 of by hand \| 0\.99 +\| \*\*no\*\* \|/)
  expect(page).toMatch(/sealed calls, 1 connection +\| 0\.9 of by hand \| 0\.91 +\| yes +\|/)
  expect(page).toContain('- FastMCP was not measured: `it said nothing for 30000 ms`')
  expect(page).not.toContain('## Tasks')
  // As the run of tasks beside DBOS records it.
  const cost = { statements: 0.5, commits: 0.4, walBytes: 8000 }
  const peers = {
    rally: { perSecond: 900, cost },
    before: { perSecond: 500, ratio: 1.8 },
    dbos: { perSecond: 300, ratio: 3 },
  }
  const postgres = {
    ...short,
    node: 'v24.0.0',
    versions: { dbos: '5.3.0', graphile: '0.18.0' },
    cases: [{ processes: 1, inFlight: 32, peers }],
  }
  const beside = written.pageOf({ calls }, { postgres }).page
  expect(beside).toMatch(/^\| tasks +\| 2026-01-01 +\| `abc` +\| 24\.0\.0 /m)
  expect(beside).toContain('`npm run bench -- tasks` measures tasks')
  expect(beside).toContain('DBOS is 5.3.0')
  expect(beside).toMatch(/1 process, 32 in flight +\| 900 +\| 3\.00 × /)
  expect(beside).toMatch(/1 process, 32 in flight +\| 0\.50 +\| 0\.40 +\| 8,000 /)
})
