// Plots as SVG text, without a library. They bring a light background of their own, so that they can be read on any page.

const width = 760
const pad = 20
const style = `
  .paper { fill: #f6f8fa; stroke: #d0d7de }
  text { fill: #1f2328; font: 13px system-ui, sans-serif }
  .title { font-weight: 600; font-size: 15px }
  .soft { fill: #59636e }
  .grid { stroke: #d8dee4; fill: none }
  .ours, .line-0 { fill: #0969da; stroke: #0969da }
  .other, .line-1 { fill: #8c959f; stroke: #8c959f }
  .line-2 { fill: #bc4c00; stroke: #bc4c00 }
  .line { fill: none; stroke-width: 2 }
  .label-0 { fill: #0969da } .label-1 { fill: #59636e } .label-2 { fill: #bc4c00 }
  .bold { font-weight: 600 }`

/** Horizontal bars, in groups that have a scale each. A row is `{ label, value, text, isOurs }`; `text` follows its bar. */
export function bars({ title, groups }) {
  const [rowHeight, labelWidth, textWidth] = [26, 150, 190]
  const longest = width - 2 * pad - labelWidth - textWidth
  const parts = []
  let y = pad + 34
  for (const { name, rows } of groups) {
    if (name !== undefined) {
      parts.push(label(pad, y, name, 'soft'))
      y += 12
    }
    const most = Math.max(...rows.map(({ value }) => value), Number.MIN_VALUE)
    for (const { label: of, value, text, isOurs } of rows) {
      const long = Math.max(1, (value / most) * longest)
      const bold = isOurs ? ' bold' : ''
      parts.push(label(pad + labelWidth - 10, y + 17, of, `end${bold}`))
      parts.push(
        `<rect class="${isOurs ? 'ours' : 'other'}" x="${pad + labelWidth}" y="${y + 4}" width="${at(long)}" height="${rowHeight - 8}" rx="2"/>`,
      )
      parts.push(label(pad + labelWidth + long + 8, y + 17, text, bold.trim()))
      y += rowHeight
    }
    y += 26
  }
  return picture({ title, height: y, parts })
}

/** Lines over numbers on a linear axis, or over `ticks`, which are names. A point is `[x, y]`; with names x is their index. */
export function lines({ title, x, y, series, ticks, isLog = false }) {
  const height = 380
  const box = { left: 78, right: width - 130, top: 72, bottom: height - 54 }
  const points = series.flatMap((each) => each.points)
  const right = ticks === undefined ? Math.max(...points.map(([value]) => value)) : ticks.length - 1
  const scale = isLog ? logScale(points.map(([, value]) => value)) : linearScale(points.map(([, value]) => value))
  const xOf = (value) => box.left + (value / right) * (box.right - box.left)
  const yOf = (value) => box.bottom - scale.part(value) * (box.bottom - box.top)
  const xTicks = ticks?.map((name, index) => [index, name]) ?? linearScale([right]).ticks.map((n) => [n, number(n)])
  const parts = []
  for (const value of scale.ticks) {
    parts.push(`<path class="grid" d="M${box.left} ${at(yOf(value))}H${box.right}"/>`)
    parts.push(label(box.left - 8, yOf(value) + 4, number(value), 'soft end'))
  }
  for (const [value, name] of xTicks)
    if (value <= right) parts.push(label(xOf(value), box.bottom + 20, name, 'soft middle'))
  parts.push(label((box.left + box.right) / 2, height - 14, x, 'soft middle'), label(pad, box.top - 18, y, 'soft'))
  const ends = apart(series.map((each) => yOf(each.points.at(-1)[1])))
  for (const [index, each] of series.entries()) {
    const path = each.points.map(([px, py]) => `${at(xOf(px))} ${at(yOf(py))}`).join('L')
    parts.push(`<path class="line line-${index}" d="M${path}"/>`)
    for (const [px, py] of each.points)
      parts.push(`<circle class="line-${index}" cx="${at(xOf(px))}" cy="${at(yOf(py))}" r="3"/>`)
    parts.push(label(box.right + 10, ends[index] + 4, each.label, `label-${index} bold`))
  }
  return picture({ title, height, parts })
}

function picture({ title, height, parts }) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">
<style>${style}
</style>
<rect class="paper" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>
${[label(pad, pad + 12, title, 'title'), ...parts].join('\n')}
</svg>
`
}

function label(x, y, text, classes = '') {
  const names = classes.split(' ')
  const anchor = names.find((name) => name === 'end' || name === 'middle')
  const styles = names.filter((name) => name !== anchor && name !== '').join(' ')
  const attributes = `${styles ? ` class="${styles}"` : ''}${anchor ? ` text-anchor="${anchor}"` : ''}`
  return `<text x="${at(x)}" y="${at(y)}"${attributes}>${escaped(text)}</text>`
}

/** From 0, with about five ticks of 1, 2 or 5 times a power of ten. */
function linearScale(values) {
  const most = Math.max(...values, Number.MIN_VALUE)
  const rough = most / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power
  const count = Math.ceil(most / step - 1e-9)
  const ticks = Array.from({ length: count + 1 }, (_, n) => Number((n * step).toPrecision(12)))
  return { ticks, part: (value) => value / (count * step) }
}

function logScale(values) {
  const low = Math.floor(Math.log10(Math.min(...values.filter((value) => value > 0))))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))))
  const ticks = Array.from({ length: high - low + 1 }, (_, n) => Number((10 ** (low + n)).toPrecision(12)))
  return { ticks, part: (value) => Math.max(0, (Math.log10(Math.max(value, 1e-12)) - low) / (high - low)) }
}

/** Moves labels apart that would cover one another. */
function apart(positions, least = 17) {
  const moved = [...positions]
  const order = positions.map((_, index) => index).toSorted((one, other) => positions[one] - positions[other])
  for (const [place, index] of order.entries()) {
    const above = order[place - 1]
    if (above !== undefined) moved[index] = Math.max(moved[index], moved[above] + least)
  }
  return moved
}

function at(value) {
  return Number(value.toFixed(1))
}

function number(value) {
  return value.toLocaleString('en', { maximumFractionDigits: 4 })
}

function escaped(text) {
  return String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
