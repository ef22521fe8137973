// The tables of docs/limits.md say what the code says: every limit that is an option is there, with its default.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readLimits } from '../../src/server/limits.ts'
import { ROOT } from './consumer.ts'

const page = readFileSync(join(ROOT, 'docs/limits.md'), 'utf8')
const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => /(?<!\.test)\.ts$/.test(file))
  .map((file) => readFileSync(join(ROOT, 'src', file), 'utf8'))
  .join('\n')

interface Row {
  readonly limit: string
  readonly defaults: string
  readonly options: readonly string[]
}

const [, server = '', client = ''] = /^## Of the server$([\s\S]*)^## Of the client$([\s\S]*)/m.exec(page) ?? []
const serverRows = rowsOf(server)
const clientRows = rowsOf(client)

/** The options that limit something, by the interface that documents them, and how the table writes their names. */
const LIMITS = [
  { type: 'LimitOptions', prefix: 'limits.', options: Object.keys(readLimits()) },
  { type: 'LoadOptions', prefix: '', options: ['maxInFlight', 'maxLagMs', 'maxBufferedBytes', 'bodyMs'] },
  { type: 'HttpOptions', prefix: '', options: ['maxBodyBytes', 'keepAliveMs', 'writeStallMs', 'maxUnreadBytes'] },
  { type: 'ServeOptions', prefix: '', options: ['drainMs', 'drainDelayMs', 'maxConnections', 'headersMs'] },
  { type: 'StdioOptions', prefix: '', options: ['maxLineBytes', 'maxInFlight', 'maxBufferedBytes'] },
  { type: 'AppOptions', prefix: '', options: ['ttl', 'maxAge', 'maxStateBytes', 'timeoutMs', 'pageSize'] },
  {
    type: 'TasksOptions',
    prefix: 'tasks.',
    options: ['ttlMs', 'leaseMs', 'concurrency', 'maxJournalBytes', 'timeoutMs', 'watchdogMs'],
  },
  { type: 'LegacyOptions', prefix: 'legacy.', options: ['askMs', 'callMs', 'keepMs'] },
  { type: 'BearerOptions', prefix: '', options: ['clockTolerance', 'maxTokenBytes', 'cacheSeconds'] },
] as const

const CLIENT_LIMITS = ['timeoutMs', 'maxRounds', 'maxStateBytes', 'maxResponseBytes', 'maxBufferedBytes', 'taskMs']

describe.each(LIMITS)('the limits of $type', ({ type, prefix, options }) => {
  test.each([...options])('%s is in the table, with its default', (option) => {
    expectInTable(serverRows, prefix + option, inBaseUnit(option, documentedDefault(type, option)))
  })
})

test.each(CLIENT_LIMITS)('the limit %s of the client is in its table, with its default', (option) => {
  expectInTable(clientRows, option, documentedDefault('ClientOptions', option))
})

test('what the comments of `limits` say is what the code does', () => {
  const limits = readLimits()
  const documented = Object.keys(limits).map((option) => [option, documentedDefault('LimitOptions', option)])
  expect(Object.fromEntries(documented)).toEqual(limits)
})

test('every option that a table names exists', () => {
  const named = [...serverRows, ...clientRows].flatMap(({ options }) => options)
  expect(named.length).toBeGreaterThan(50)
  const missing = named.filter(
    (name) => !new RegExp(`^ +(?:readonly )?${name.replace(/^.*\./, '')}\\??:`, 'm').test(source),
  )
  expect(missing).toEqual([])
})

/** An option may be in several rows. One of them has its default, if that is a number. */
function expectInTable(rows: readonly Row[], option: string, documented: number | undefined): void {
  const named = rows.filter(({ options }) => options.includes(option))
  expect(named.length, `the rows of ${option}`).toBeGreaterThan(0)
  if (documented === undefined) return
  const quantities = named.flatMap(({ defaults }) => quantitiesIn(defaults))
  expect(quantities, `the defaults in the rows of ${option}`).toContain(documented)
}

function rowsOf(text: string): Row[] {
  return [...text.matchAll(/^\| ([^|]*)\| ([^|]*)\| ([^|]*)\|$/gm)]
    .slice(2)
    .map(([, limit = '', defaults = '', last = '']) => ({
      limit: limit.trim(),
      defaults: defaults.trim(),
      options: [...last.matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name).filter((name) => name !== 'null'),
    }))
}

/** The number after "Default" in the comment of the option. */
function documentedDefault(type: string, option: string): number | undefined {
  const [, body = ''] =
    new RegExp(`^export interface ${type}\\b[\\s\\S]*?\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(source) ?? []
  const [, comment = ''] = new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\n {2}${option}\\?:`).exec(body) ?? []
  expect(comment, `${type}.${option} has no comment`).not.toBe('')
  const [, digits] = /Default (\d+(?: \d{3})*(?:\.\d+)?)/.exec(comment) ?? []
  return digits === undefined ? undefined : Number(digits.replaceAll(' ', ''))
}

/** Times in milliseconds, everything else as it is. */
function inBaseUnit(option: string, value: number | undefined): number | undefined {
  if (value === undefined) return undefined
  return ['ttl', 'maxAge', 'clockTolerance', 'cacheSeconds'].includes(option) ? value * 1_000 : value
}

const UNITS: Readonly<Record<string, number>> = {
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  KiB: 1_024,
  MiB: 1_048_576,
}

/** "4 MiB", "10 s", "1 000", "a quarter", "a day". */
function quantitiesIn(text: string): number[] {
  const numbers = [...text.matchAll(/(\d+(?: \d{3})*(?:\.\d+)?)(?: (s|min|h|KiB|MiB)\b)?/g)].map(
    ([, digits = '', unit = '']) => Number(digits.replaceAll(' ', '')) * (UNITS[unit] ?? 1),
  )
  const words = [...(text.includes('a quarter') ? [0.25] : []), ...(text.includes('a day') ? [86_400_000] : [])]
  return [...numbers, ...words]
}
