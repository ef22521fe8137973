// What the sections of the page share: names of peers, numbers and tables.

const names = {
  rally: 'Rally',
  byHand: 'by hand',
  echo: 'echo',
  official: 'official v2',
  tuned: 'official v2, tuned',
  v1: 'official v1',
  fastmcp: 'FastMCP',
  mcpUse: 'mcp-use',
  dbos: 'DBOS',
  graphile: 'graphile-worker',
  batched: 'graphile, batched',
}

export function nameOf(peer) {
  return names[peer] ?? peer
}

export function rounded(value, digits = 0) {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export function mebibytes(bytes) {
  return `${rounded(bytes / 1_048_576, 1)} MiB`
}

export function ratioText(ratio) {
  if (ratio === undefined) return ''
  return `${rounded(ratio, ratio < 10 ? 2 : 0)} ×`
}

/** As the formatter has it, with all cells padded. Cells may be nested in lists. */
export function markdownTable(titles, lists) {
  const head = titles.flat()
  const rows = lists.map((cells) => cells.flat())
  const widths = head.map((title, column) => Math.max(3, title.length, ...rows.map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

export function picture(file, alt) {
  return `![${alt}](pictures/${file})`
}

/** A list of the peers that were not measured, and why. */
export function missing(failures = {}) {
  const list = Object.entries(failures).map(([name, reason]) => `- ${nameOf(name)} was not measured: \`${reason}\``)
  return list.length === 0 ? undefined : list.join('\n')
}

export function joined(...texts) {
  return texts.filter((text) => text !== undefined).join('\n\n')
}

/** One case of the section `calls`. */
export function caseOf({ results }, scenario, connections) {
  return results.find((each) => each.scenario === scenario && each.connections === connections)
}
