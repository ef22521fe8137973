// Draws docs/pictures/flow.svg: a call of two rounds over two instances. `node scripts/draw-flow.mjs` writes it; a test compares.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const LANES = [
  { name: 'client', x: 130, note: 'has the sealed journal' },
  { name: 'instance A', x: 430, note: 'may restart or be gone' },
  { name: 'instance B', x: 730, note: 'has the same key' },
]

const [client, first, second] = LANES

/** From top to bottom. A message goes between two lanes; work happens on one. */
const EVENTS = [
  { from: client, to: first, text: 'tools/call deploy {env: "prod"}' },
  { at: first, text: "step 'plan' runs", kind: 'work' },
  { at: first, text: "ask 'confirm': no answer yet", kind: 'ask' },
  { from: first, to: client, text: 'input_required + requestState' },
  { at: client, text: 'the user thinks: minutes, hours', kind: 'wait' },
  { from: client, to: second, text: 'the same call + answer + requestState' },
  { at: second, text: "'plan' comes from the journal", kind: 'replay' },
  { at: second, text: "'confirm' is answered", kind: 'replay' },
  { at: second, text: "step 'ship' runs", kind: 'work' },
  { from: second, to: client, text: 'Deployed' },
]

const TOP = 92
const STEP = 40
const WIDTH = 860
const HEIGHT = TOP + EVENTS.length * STEP + 24

export function draw() {
  const parts = [...LANES.map(lane), ...EVENTS.map((event, index) => draws(event, TOP + 28 + index * STEP))]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="title" font-family="ui-sans-serif, system-ui, sans-serif" font-size="14">
<title id="title">A call of two rounds: instance A asks, the client keeps the sealed journal while the user thinks, and instance B continues.</title>
<style>
.paper{fill:#fff}.ink{fill:#1f2328}.soft{fill:#59636e}.line{stroke:#59636e}.work{fill:#dafbe1}.ask{fill:#fff8c5}.wait{fill:#f6f8fa}.replay{fill:#ddf4ff}
@media (prefers-color-scheme: dark){.paper{fill:#0d1117}.ink{fill:#f0f6fc}.soft{fill:#9198a1}.line{stroke:#9198a1}.work{fill:#12361f}.ask{fill:#3b2e00}.wait{fill:#21262d}.replay{fill:#0c2d4a}}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="soft" d="M0 0L8 4L0 8z"/></marker></defs>
<rect class="paper" width="${WIDTH}" height="${HEIGHT}" rx="8"/>
${parts.join('\n')}
</svg>
`
}

function lane({ name, x, note }) {
  return `<text class="ink" x="${x}" y="36" text-anchor="middle" font-weight="600" font-size="16">${name}</text>
<text class="soft" x="${x}" y="58" text-anchor="middle" font-size="12">${note}</text>
<line class="line" x1="${x}" y1="72" x2="${x}" y2="${HEIGHT - 16}" stroke-dasharray="2 4"/>`
}

function draws(event, y) {
  return event.at === undefined ? message(event, y) : work(event, y)
}

function message({ from, to, text }, y) {
  const inward = from.x < to.x ? 8 : -8
  return `<line class="line" x1="${from.x + inward}" y1="${y}" x2="${to.x - inward}" y2="${y}" stroke-width="1.5" marker-end="url(#head)"/>
<text class="ink" x="${Math.min(from.x, to.x) + 14}" y="${y - 7}" font-size="13">${escaped(text)}</text>`
}

function work({ at, text, kind }, y) {
  const width = 236
  return `<rect class="${kind}" x="${at.x - width / 2}" y="${y - 17}" width="${width}" height="28" rx="6"/>
<text class="ink" x="${at.x}" y="${y + 2}" text-anchor="middle" font-size="13">${escaped(text)}</text>`
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  writeFileSync(join(import.meta.dirname, '../docs/pictures/flow.svg'), draw())
