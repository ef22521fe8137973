// Scaling on paper: what a million users cost, computed from recorded costs, and a simulation of rolling deploys and key rotation.
// `node bench/scaling.mjs --update` writes the tables of docs/scaling.md. Seeded: the same costs give the same page.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const root = join(import.meta.dirname, '..')
const PAGE = join(root, 'docs/scaling.md')

/** Share of a core that an instance should use, so that bursts and a lost neighbour fit. */
const LOAD = 0.5
const USERS = 1_000_000

const { calls } = readRecord('bench/results-all.json')
const { postgres } = readRecord('bench/results-tasks.json')
const at32 = (wanted) => calls.results.find((each) => each.scenario === wanted && each.connections === 32).peers.rally

/** As `npm run bench -- all` and `npm run bench -- tasks` recorded them. */
const COSTS = {
  plain: at32('plain'),
  sealed: at32('sealed'),
  tasks: [32, 256].map((inFlight) => {
    const { rally } = postgres.cases.find((each) => each.processes === 1 && each.inFlight === inFlight).peers
    return { inFlight, perSecond: rally.perSecond, cost: rally.cost }
  }),
}

/** The page's tables, by the names of their places. */
export function tables() {
  return { costs: costs(), users: users(), questions: questions(), deploys: deploys(), rotations: rotations() }
}

function costs() {
  const { plain, sealed, tasks } = COSTS
  return table(
    ['cost', 'measured'],
    [
      [
        'a plain call',
        `${plain.cpuMicroseconds} µs of a core, ${plain.requestBytes} bytes in, ${plain.responseBytes} out`,
      ],
      [
        'a round of a sealed question',
        `${sealed.cpuMicroseconds} µs of a core, ${sealed.requestBytes} bytes in, ${sealed.responseBytes} out`,
      ],
      ['an open question that the client carries', '0 bytes of server memory, 0 rows'],
      ...tasks.map(({ inFlight, perSecond, cost: { statements, walBytes } }) => [
        `a task in PostgreSQL, ${inFlight} in flight`,
        `${statements} statements, ${number(walBytes)} bytes of WAL; ${number(Math.round(perSecond))} tasks a second with one process`,
      ]),
      ['an open question of a task', '0 bytes of server memory, 1 row, and at most one for each entry of its journal'],
      ['calls measured', where(calls)],
      ['tasks measured', where(postgres)],
    ],
  )
}

function where({ date, cpu, cores, node }) {
  return `${date}, ${cores} × ${cpu}, Node ${node.replace('v', '')}`
}

function users() {
  const { plain, sealed, tasks } = COSTS
  const rows = [1, 10, 100].map((perHour) => {
    const perSecond = (USERS * perHour) / 3600
    const plainCores = (perSecond * plain.cpuMicroseconds) / 1e6
    const askedCores = (perSecond * 2 * sealed.cpuMicroseconds) / 1e6
    const megabytes = (perSecond * 2 * (sealed.requestBytes + sealed.responseBytes)) / 1e6
    return [
      number(perHour),
      number(Math.round(perSecond)),
      number(Math.ceil(plainCores / LOAD)),
      number(Math.ceil(askedCores / LOAD)),
      `${megabytes.toFixed(1)} MB/s`,
      tasks.map((task) => number(Math.ceil(perSecond / task.perSecond / LOAD))).join(' or '),
      tasks.map((task) => number(Math.round(perSecond * task.cost.statements))).join(' or '),
      `${((perSecond * Math.max(...tasks.map((task) => task.cost.walBytes))) / 1e6).toFixed(1)} MB/s`,
    ]
  })
  return table(
    [
      'calls of a user per hour',
      'calls per second',
      'cores, if plain',
      'cores, if each asks once',
      'network',
      'processes, if each is a task',
      'SQL statements per second',
      'WAL',
    ],
    rows,
  )
}

function questions() {
  return table(
    [
      'open questions of a user',
      'open in all',
      'server memory',
      'rows, if clients carry them',
      'rows, if they are tasks',
    ],
    [1, 10, 100].map((open) => [number(open), number(open * USERS), '0', '0', `${number(open * USERS)} or more`]),
  )
}

const INSTANCES = 1_000
const FLOWS = 200_000
const TTL = 660
const SECONDS = 7_200

/**
 * Flows begin at random times on random instances, and their answers come after a random time (a minute at the median) to another
 * random instance. `ringOf(instance, time)` says which keys an instance has, first the one that mints; undefined while it is down.
 * The rule is that of the seal: a state opens if its key is in the ring and it is not older than the ttl with its tolerance.
 */
function simulate(seed, ringOf) {
  const random = seededRandom(seed)
  const lost = { key: 0, expired: 0 }
  let retried = 0
  /** A load balancer sends a request to another instance while one is down. */
  const reach = (time) => {
    for (;;) {
      const ring = ringOf(Math.floor(random() * INSTANCES), time)
      if (ring !== undefined) return ring
      retried += 1
    }
  }
  for (let flow = 0; flow < FLOWS; flow += 1) {
    const begun = random() * SECONDS
    const answered = begun + 60 * Math.exp(1.2 * normal(random))
    const [minting] = reach(begun)
    if (answered - begun > TTL) lost.expired += 1
    else if (!reach(answered).includes(minting)) lost.key += 1
  }
  return { lost, retried }
}

const KEYS = ['one']

function deploys() {
  const rollouts = [
    ['nothing happens', () => KEYS],
    ['50 at a time, each down for 20 s', rolling({ batch: 50, every: 60, down: 20 }, () => KEYS)],
    ['200 at a time, each down for 60 s', rolling({ batch: 200, every: 120, down: 60 }, () => KEYS)],
    [
      'half of the fleet is lost for 10 minutes',
      (instance, time) => (instance < INSTANCES / 2 && time > 3_000 && time < 3_600 ? undefined : KEYS),
    ],
  ]
  return table(
    ['rollout over 1,000 instances', 'flows', 'lost', 'answered too late', 'requests that the balancer sent elsewhere'],
    rollouts.map(([name, ringOf], seed) => {
      const { lost, retried } = simulate(seed + 1, ringOf)
      return [name, number(FLOWS), number(lost.key), number(lost.expired), number(retried)]
    }),
  )
}

/** Each rollout takes 20 minutes: instance 0 is first, instance 999 last. */
const at = (instance, start) => start + (instance / INSTANCES) * 1_200

function rotations() {
  const [before, after] = ['old', 'new']
  const plans = [
    [
      '[old, new], [new, old], and [new] 11 minutes after the last instance',
      [
        [900, [before, after]],
        [2_400, [after, before]],
        [4_500, [after]],
      ],
    ],
    [
      'without the wait: [new] at once',
      [
        [900, [before, after]],
        [2_400, [after, before]],
        [3_600, [after]],
      ],
    ],
    [
      'without the first step: [new, old] at once',
      [
        [900, [after, before]],
        [4_500, [after]],
      ],
    ],
    ['[new] at once', [[900, [after]]]],
  ]
  return table(
    ['rollout of the keys', 'flows', 'lost', 'share', 'answered too late'],
    plans.map(([name, steps], seed) => {
      const { lost } = simulate(seed + 11, (instance, time) => {
        const passed = steps.filter(([start]) => time >= at(instance, start))
        return passed.at(-1)?.[1] ?? [before]
      })
      return [name, number(FLOWS), number(lost.key), `${((100 * lost.key) / FLOWS).toFixed(2)} %`, number(lost.expired)]
    }),
  )
}

/** A batch goes down every so often, beginning after 15 minutes. */
function rolling({ batch, every, down }, ringWhenUp) {
  return (instance, time) => {
    const start = 900 + Math.floor(instance / batch) * every
    return time >= start && time < start + down ? undefined : ringWhenUp(instance, time)
  }
}

/** mulberry32: small, and the same everywhere. */
function seededRandom(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Box and Muller. */
function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

function readRecord(file) {
  return JSON.parse(readFileSync(join(root, file), 'utf8'))
}

function number(value) {
  return value.toLocaleString('en')
}

/** Padded as the formatter pads it. */
function table(head, rows) {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column].length)))
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rows.map(line)].join('\n')
}

/** The text of the page with fresh tables. */
export function freshPage(text = readFileSync(PAGE, 'utf8')) {
  let page = text
  for (const [name, made] of Object.entries(tables())) {
    page = page.replace(
      new RegExp(`(<!-- ${name} -->\\n)[^]*?(\\n<!-- end -->)`),
      (_all, begin, end) => `${begin}\n${made}\n${end}`,
    )
  }
  return page
}

/** Writes the tables of docs/scaling.md anew. */
export function updatePage() {
  writeFileSync(PAGE, freshPage())
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  if (process.argv.includes('--update')) updatePage()
  else console.log(Object.values(tables()).join('\n\n'))
}
