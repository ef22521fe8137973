// The command: runs each target in a process of its own, watches it, and writes down what it finds.
import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { ChildMessage, ChildSettings, Found } from './child.ts'
import type { Json } from './json.ts'
import { shrink } from './shrink.ts'
import { clipped, Finding } from './target.ts'
import { targets } from '../targets/index.ts'

const USAGE = `Usage: npm run fuzz -- [options]

  --minutes N      minutes for each target; default 1
  --inputs N       most inputs for each target; default: as many as the time allows
  --target NAME    only this target; may be repeated: ${targets.map(({ name }) => name).join(', ')}
  --seed N         repeats the run of this seed; default: another one each time
  --hang N         seconds of silence after which a process is taken for hung; default 10
  --out FOLDER     where findings are written; default test/fuzz/findings
  --replay FILE    runs the input of one finding, or of one file of the corpus with --target`

/** Where the bundle is, and where the harness has its files. */
export interface Places {
  readonly child: string
  readonly folder: string
}

interface Plan {
  readonly places: Places
  readonly seed: number
  readonly minutes: number
  readonly inputs: number
  readonly out: string
  /** A process that says nothing for so long is taken for hung. It speaks four times a second. */
  readonly silentMs: number
  /** For the files of the children. */
  readonly scratch: string
}

interface Summary {
  readonly target: string
  readonly inputs: number
  readonly seconds: number
  readonly ways: number
  readonly heapMb: number
  readonly findings: number
}

const MOST_AT_ONCE = 2
/** A busy machine may take long to start one. */
const STARTING_MS = 60_000
const MOST_DEATHS = 5
const SHRINKING = { tries: 40, ms: 90_000 }

export async function main(args: readonly string[], places: Places): Promise<number> {
  const scratch = mkdtempSync(join(tmpdir(), 'rally-fuzz-'))
  try {
    return await run(args, places, scratch)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function run(args: readonly string[], places: Places, scratch: string): Promise<number> {
  let plan: Plan
  let chosen: string[]
  let replayed: string | undefined
  try {
    const { values } = parseArgs({ args: [...args], options: OPTIONS })
    const number = (name: 'minutes' | 'inputs' | 'seed' | 'hang'): number => {
      const value = Number(values[name])
      if (value >= 0) return value
      throw new Error(`--${name} must be a number, got "${values[name]}".`)
    }
    const numbers = { minutes: number('minutes'), inputs: number('inputs'), seed: number('seed') }
    const out = resolve(values.out ?? join(places.folder, 'findings'))
    plan = { places, scratch, out, ...numbers, silentMs: number('hang') * 1_000 }
    chosen = values.target ?? targets.filter(({ isDrill }) => !isDrill).map(({ name }) => name)
    const unknown = chosen.find((name) => !targets.some((each) => each.name === name))
    if (unknown !== undefined) throw new Error(`There is no target "${unknown}".`)
    replayed = values.replay
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    return 2
  }
  if (replayed !== undefined) return replay(plan, replayed, chosen)
  console.log(`Seed ${plan.seed}, ${plan.minutes} minutes for each of: ${chosen.join(', ')}.`)
  const summaries: Summary[] = []
  const waiting = [...chosen]
  const lane = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const summary = await fuzzTarget(plan, name)
      summaries.push(summary)
      console.log(lineOf(summary))
    }
  }
  await Promise.all(Array.from({ length: MOST_AT_ONCE }, lane))
  const found = summaries.reduce((sum, { findings }) => sum + findings, 0)
  console.log(found === 0 ? 'No findings.' : `${found} findings, written to ${plan.out}.`)
  return found === 0 ? 0 : 1
}

const OPTIONS = {
  minutes: { type: 'string', default: '1' },
  inputs: { type: 'string', default: 'Infinity' },
  target: { type: 'string', multiple: true },
  seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
  hang: { type: 'string', default: '10' },
  out: { type: 'string' },
  replay: { type: 'string' },
} as const

async function replay(plan: Plan, file: string, chosen: readonly string[]): Promise<number> {
  const { target = chosen[0] ?? '' } = JSON.parse(readFileSync(file, 'utf8')) as { target?: string }
  const { findings, death } = await runChild(plan, target, { replay: resolve(file), untilMs: Date.now() + 60_000 })
  if (death !== undefined) console.log(`${death.kind}: ${death.message}`)
  for (const { kind, message } of findings) console.log(`${kind}: ${message}`)
  const isFound = death !== undefined || findings.length > 0
  if (!isFound) console.log('Nothing was found with this input.')
  return isFound ? 1 : 0
}

/** A process that dies is followed by another one, which goes on after the input that it died of. */
async function fuzzTarget(plan: Plan, target: string): Promise<Summary> {
  const began = Date.now()
  const untilMs = began + plan.minutes * 60_000
  const keys = new Set<string>()
  const note = (found: Found): void => {
    if (keys.has(found.key)) return
    keys.add(found.key)
    write(plan, target, found)
  }
  let inputs = 0
  let last: Ended | undefined
  for (let deaths = 0; deaths < MOST_DEATHS && Date.now() < untilMs && inputs < plan.inputs;) {
    last = await runChild(plan, target, { from: inputs, untilMs, inputs: plan.inputs - inputs }, note)
    const { death, index, input } = last
    inputs = index + 1
    if (death === undefined) break
    deaths += 1
    const { kind, key, message } = death
    if (!keys.has(key)) note({ kind, key, message, ...(await smallest(plan, target, input, kind)) })
  }
  const { ways = 0, heapMb = 0 } = last ?? {}
  return { target, inputs, seconds: (Date.now() - began) / 1_000, ways, heapMb, findings: keys.size }
}

/** Each try is a process of its own, because it dies or is killed. */
async function smallest(
  plan: Plan,
  target: string,
  input: Json,
  kind: string,
): Promise<Pick<Found, 'input' | 'reproduced'>> {
  const file = join(plan.scratch, `${target}-smaller.json`)
  const dies = async (smaller: Json): Promise<boolean> => {
    writeFileSync(file, JSON.stringify({ input: smaller }))
    const { death } = await runChild(plan, target, { replay: file, untilMs: Date.now() + 60_000 })
    return death?.kind === kind
  }
  const reproduced = await dies(input)
  return { reproduced, input: reproduced ? await shrink(input, dies, SHRINKING) : input }
}

interface Ended {
  readonly ways: number
  readonly heapMb: number
  readonly findings: readonly Found[]
  /** How the process ended, unless it did so by itself. */
  readonly death: Finding | undefined
  /** The input that ran last, and its number. */
  readonly input: Json
  readonly index: number
}

async function runChild(
  plan: Plan,
  target: string,
  given: Partial<ChildSettings>,
  note: (found: Found) => void = () => {},
): Promise<Ended> {
  const current = join(plan.scratch, `${target}-current.json`)
  const corpus = join(plan.places.folder, 'corpus')
  const settings = { target, seed: plan.seed, from: 0, untilMs: 0, inputs: plan.inputs, corpus, current, ...given }
  // JSON has no infinity.
  const text = JSON.stringify({ ...settings, inputs: Math.min(settings.inputs, Number.MAX_SAFE_INTEGER) })
  const child = fork(plan.places.child, [text], {
    execArgv: ['--expose-gc', '--max-old-space-size=256', '--enable-source-maps'],
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let words = ''
  child.stderr?.setEncoding('utf8').on('data', (more: string) => (words = (words + more).slice(-4_000)))
  let alive = { ways: 0, heapMb: 0 }
  const findings: Found[] = []
  const isHung = await untilEnd(child, plan.silentMs, (message) => {
    if (message.type === 'alive') alive = message
    else {
      findings.push(message.found)
      note(message.found)
    }
  })
  const { exitCode, signalCode } = child
  const death = isHung
    ? new Finding('hang', `The process did not turn its event loop for ${plan.silentMs} ms.`)
    : exitCode === 0
      ? undefined
      : new Finding('crash', `The process ended with ${exitCode ?? signalCode}. ${words}`)
  return { ...alive, findings, death, ...lastOf(current) }
}

/** Resolves once the process has ended, with whether it had to be killed. */
function untilEnd(child: ChildProcess, silentMs: number, receive: (message: ChildMessage) => void): Promise<boolean> {
  return new Promise((done) => {
    let isHung = false
    const kill = (): void => {
      isHung = true
      child.kill('SIGKILL')
    }
    let timer = setTimeout(kill, STARTING_MS)
    child.on('message', (message) => {
      clearTimeout(timer)
      timer = setTimeout(kill, silentMs)
      receive(message as ChildMessage)
    })
    child.on('close', () => {
      clearTimeout(timer)
      done(isHung)
    })
  })
}

function lastOf(file: string): Pick<Ended, 'input' | 'index'> {
  try {
    const [index, input = 'null'] = readFileSync(file, 'utf8').split('\n')
    return { index: Number(index), input: JSON.parse(input) as Json }
  } catch {
    // It ended before the first one.
    return { index: -1, input: null }
  }
}

function write(plan: Plan, target: string, { kind, key, message, input, reproduced }: Found): void {
  mkdirSync(plan.out, { recursive: true })
  const name = `${target}-${kind}-${createHash('sha256').update(key).digest('hex').slice(0, 8)}.json`
  const file = join(plan.out, name)
  writeFileSync(file, `${JSON.stringify({ target, kind, seed: plan.seed, reproduced, message, input }, null, 2)}\n`)
  const again = reproduced ? `--replay ${file}` : `--target ${target} --seed ${plan.seed}`
  console.log(`FOUND ${target} ${kind}: ${message.slice(0, 1_500)}`)
  console.log(`  input: ${clipped(JSON.stringify(input), 1_500)}`)
  console.log(`  ${reproduced ? '' : 'It needs the inputs before it. '}To repeat it: npm run fuzz -- ${again}`)
}

function lineOf({ target, inputs, seconds, ways, heapMb, findings }: Summary): string {
  const rate = Math.round(inputs / seconds)
  return `${target.padEnd(10)} ${inputs} inputs in ${seconds.toFixed(1)} s (${rate}/s), ${ways} ways, heap ${heapMb} MB, ${findings} findings`
}
