// The matrix as text, for the terminal and for docs/matrix.md.
import type { Case, Reason, Row } from './table.ts'
import { CASES, casesOf, CLIENTS, REASONS, reasonAgainst, REVISIONS, ROWS, SERVERS, WIRES } from './table.ts'

/** What a cell that is tried says. */
export type Verdict = (row: Row, given: Case) => string

/** One table for each wire, and what the letters in them mean. */
export function renderMatrix(verdict: Verdict): string {
  const letters = new Set<Reason>()
  const cellOf = (row: Row, given: Case): string => {
    const reason = reasonAgainst(row, given)
    if (reason !== undefined) letters.add(reason)
    return reason ?? verdict(row, given)
  }
  const header = ['server', 'client', 'revision', ...CASES.map(({ name }) => name)]
  const tables = WIRES.map((wire) => {
    const rows = ROWS.filter((row) => row.wire === wire && casesOf(row).length > 0)
    const lines = rows.map((row) => {
      const names: string[] = [SERVERS[row.server], CLIENTS[row.client], row.revision]
      return names.concat(CASES.map((given) => cellOf(row, given)))
    })
    return `## Over ${wire}\n\n${renderTable([header, ...lines])}`
  })
  const meanings = [...letters].toSorted().map((letter) => `${letter}: ${REASONS[letter]}`)
  return [...tables, ...meanings].join('\n\n')
}

/** The pairs of which nothing is tried somewhere, and why. */
export function renderLeftOut(): string {
  const places = new Map<string, Row[]>()
  for (const row of ROWS.filter((each) => casesOf(each).length === 0)) {
    const reason = reasonAgainst(row, CASES[0] as Case)
    const pair = JSON.stringify([SERVERS[row.server], CLIENTS[row.client], reason && REASONS[reason]])
    places.set(pair, [...(places.get(pair) ?? []), row])
  }
  const lines = [...places].map(([pair, rows]) => {
    const [server = '', client = '', reason = ''] = JSON.parse(pair) as string[]
    return [server, client, renderPlaces(rows), reason]
  })
  return renderTable([['server', 'client', 'where', 'reason'], ...lines])
}

function renderPlaces(rows: readonly Row[]): string {
  if (rows.length === REVISIONS.length * WIRES.length) return 'everywhere'
  const places = REVISIONS.map((revision) => {
    const [first, ...others] = rows.filter((row) => row.revision === revision)
    return first && (others.length > 0 ? revision : `${revision} over ${first.wire}`)
  })
  return places.filter((place) => place !== undefined).join(', ')
}

function renderTable([header = [], ...rows]: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return [line(header), rule, ...rows.map(line)].join('\n')
}
