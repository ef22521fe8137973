// Rows as a table for people.
import { cleanLine } from './clean.ts'

const GAP = '  '
const WIDEST = 44
const NARROWEST = 20
const LONGEST_CELL = 500

/** The last column gets the rest of `columns`. Without a screen, `columns` is Infinity and nothing is cut. */
export function table(headings: readonly string[], rows: readonly (readonly unknown[])[], columns: number): string[] {
  const cells = [headings, ...rows.map((row) => row.map((cell) => cleanLine(cell, LONGEST_CELL)))]
  const widths = headings.map((_, column) =>
    Math.min(WIDEST, Math.max(...cells.map((row) => row[column]?.length ?? 0))),
  )
  const last = headings.length - 1
  const before = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0)
  widths[last] = Number.isFinite(columns) ? Math.max(columns - before, NARROWEST) : Infinity
  return cells.map((row) =>
    row
      .map((cell, column) => fitted(cell, widths[column] ?? 0, column === last))
      .join(GAP)
      .trimEnd(),
  )
}

/** Only the last cell is cut. The others may be names, so they push the rest to the right. */
function fitted(cell: string, width: number, isLast: boolean): string {
  if (!isLast) return cell.padEnd(width)
  return cell.length <= width ? cell : `${cell.slice(0, width - 3)}...`
}
