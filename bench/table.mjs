// A table as plain text: the first column to the left, the others to the right.

export function table(header, rows) {
  const lines = [header, ...rows].map((cells) => cells.map(String))
  const widths = header.map((_, column) => Math.max(...lines.map((cells) => cells[column].length)))
  const [head, ...body] = lines.map((cells) =>
    cells.map((cell, column) => (column ? cell.padStart(widths[column]) : cell.padEnd(widths[column]))).join('  '),
  )
  return [head, '-'.repeat(head.length), ...body].join('\n')
}
