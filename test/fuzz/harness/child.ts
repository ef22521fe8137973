// Fuzzes one target in this process: `child.js <settings as JSON>`. The parent watches, and is told by messages.
import { readdirSync, readFileSync, openSync, writeSync, ftruncateSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import type { Json } from './json.ts'
import { Random } from './random.ts'
import { shrink } from './shrink.ts'
import type { Running } from './target.ts'
import { clipped, Finding, stackOf, Watch } from './target.ts'
import { targets } from '../targets/index.ts'

export interface ChildSettings {
  readonly target: string
  readonly seed: number
  /** The first input to run, so that a run goes on after a crash. */
  readonly from: number
  readonly untilMs: number
  readonly inputs: number
  /** Its kept inputs, a folder for each target. */
  readonly corpus: string
  /** Always holds the index and the input that runs, should this process not live to tell. */
  readonly current: string
  /** Runs this one file and nothing else. */
  readonly replay?: string
}

export type ChildMessage =
  | { readonly type: 'alive'; readonly inputs: number; readonly ways: number; readonly heapMb: number }
  | { readonly type: 'finding'; readonly found: Found }

export interface Found {
  readonly kind: string
  readonly key: string
  readonly message: string
  readonly input: Json
  /** Whether the input alone shows it, in a target that was just opened. */
  readonly reproduced: boolean
}

const LIMIT_MS = 5_000
const CLOSE_MS = 5_000
const MOST_CPU_MS = 1_500
const KEEPS_BYTES = 24 * 1024 * 1024
/** What may be left when a target is closed: compiled code, and caches of the runtime. */
const SLACK_BYTES = 24 * 1024 * 1024
const MEASURE_EVERY = 500
const MOST_IN_POOL = 2_000
const SHRINKING = { tries: 400, ms: 15_000 }

const SHARED = [Object, Array, Function, String, Number, Promise, Map].map((type) => type.prototype as object)
const SHARED_KEYS = SHARED.map((prototype) => Reflect.ownKeys(prototype).length)

const settings = JSON.parse(process.argv[2] ?? '{}') as ChildSettings
const watch = new Watch()
process.on('unhandledRejection', (reason) =>
  watch.report('uncaught', `A rejection that nobody handles: ${stackOf(reason)}`),
)
process.on('uncaughtException', (error) =>
  watch.report('uncaught', `An exception that nobody catches: ${stackOf(error)}`),
)

const chosen = targets.find(({ name }) => name === settings.target)
if (chosen === undefined) throw new Error(`There is no target "${settings.target}".`)
const fuzzed = chosen
const current = openSync(settings.current, 'w')
const keys = new Set<string>()
/** Of the input that runs. */
let number = settings.from
let ran = 0
let heapMb = 0
/** The command was ended, so nobody waits for what this process finds. */
const orphaned = (): void => process.exit()
process.on('disconnect', orphaned)

const pool = settings.replay === undefined ? readCorpus() : []
const ways = new Set<string>()
const heartbeat = setInterval(() => tell({ type: 'alive', inputs: ran, ways: ways.size, heapMb }), 250)
tell({ type: 'alive', inputs: 0, ways: 0, heapMb: 0 })
try {
  await (settings.replay === undefined ? fuzz() : replay(settings.replay))
} catch (error) {
  console.error(`The harness failed: ${stackOf(error)}`)
  process.exit(70)
}
clearInterval(heartbeat)
tell({ type: 'alive', inputs: ran, ways: ways.size, heapMb })
process.off('disconnect', orphaned)
process.disconnect?.()
// What a target leaves open must not keep the process: that it is closed is checked by the memory.
setTimeout(() => process.exit(0), 500).unref()

async function fuzz(): Promise<void> {
  const kept = pool.length
  let running: Running | undefined
  let base = Number.POSITIVE_INFINITY
  for (; ran < settings.inputs && Date.now() < settings.untilMs; number += 1) {
    const input = number < kept ? (pool[number] as Json) : nextInput(new Random(settings.seed, number))
    running ??= await fuzzed.open(watch)
    const { findings, words } = await attempt(running, input)
    ran += 1
    if (isNew(words) && number >= kept) keep(input)
    // What was found before is not looked into again, but what hangs must not be left open.
    if (findings.some(({ key, kind }) => !keys.has(key) || kind === 'hang')) {
      for (const finding of [...findings, ...(await closed(running))]) await tellFinding(finding, input)
      running = undefined
      base = Number.POSITIVE_INFINITY
    }
    if (ran % MEASURE_EVERY === 0) base = await checkMemory(base)
  }
  if (running !== undefined) for (const finding of await closed(running)) await tellFinding(finding, null)
  // Or what the fuzzer itself keeps would count as memory that is left.
  running = undefined
  pool.length = 0
  const left = await heapBytes()
  if (left > base + SLACK_BYTES + (fuzzed.keepsBytes ?? 0))
    tellMemory(`After closing, the heap has ${mb(left)} MB; at first it had ${mb(base)} MB.`)
}

async function replay(file: string): Promise<void> {
  const { input } = JSON.parse(readFileSync(file, 'utf8')) as { input: Json }
  const running = await fuzzed.open(watch)
  const { findings } = await attempt(running, input)
  ran += 1
  for (const { kind, key, message } of [...findings, ...(await closed(running))]) {
    tell({ type: 'finding', found: { kind, key, message, input, reproduced: true } })
  }
}

/** One that is made anew, as it is or changed; or one that was kept, changed. */
function nextInput(random: Random): Json {
  const isNewOne = pool.length === 0 || random.chance(0.4)
  let input = isNewOne ? fuzzed.generate(random) : random.pick(pool)
  const others = pool.length === 0 ? [input] : pool
  for (let times = isNewOne ? random.int(3) : 1 + random.int(3); times > 0; times -= 1) {
    input = fuzzed.mutate(random, input, random.pick(others))
  }
  return input
}

/** Whether something happened that had not happened before, or not after the same thing. */
function isNew(words: readonly string[]): boolean {
  const before = ways.size
  for (const [index, word] of words.entries()) ways.add(word).add(`${words[index - 1]} then ${word}`)
  return ways.size > before
}

function keep(input: Json): void {
  if (pool.length < MOST_IN_POOL) pool.push(input)
  else pool[number % MOST_IN_POOL] = input
}

interface Attempt {
  readonly findings: readonly Finding[]
  readonly words: readonly string[]
}

async function attempt(running: Running, input: Json): Promise<Attempt> {
  ftruncateSync(current, 0)
  writeSync(current, `${number}\n${JSON.stringify(input)}`, 0)
  const before = process.cpuUsage()
  let words: readonly string[] = []
  try {
    words = await withinTime(running.run(input), fuzzed.limitMs ?? LIMIT_MS, 'The input')
  } catch (error) {
    watch.add(error)
  }
  // Node tells of a rejection once the microtasks are through.
  await turn()
  const { user, system } = process.cpuUsage(before)
  const spentMs = (user + system) / 1_000
  if (spentMs > (fuzzed.mostCpuMs ?? MOST_CPU_MS))
    watch.report('slow', `The input took ${Math.round(spentMs)} ms of the processor.`)
  checkPrototypes()
  return { findings: watch.take(), words }
}

async function withinTime<T>(running: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Finding('hang', `${what} was not done within ${ms} ms.`)), ms)
  })
  try {
    return await Promise.race([running, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Each fault is told once, with the smallest input that shows it. */
async function tellFinding(finding: Finding, input: Json): Promise<void> {
  const { kind, key, message } = finding
  if (keys.has(key)) return
  keys.add(key)
  const isShown = (smaller: Json): Promise<boolean> => shows(smaller, key)
  const reproduced = await isShown(input)
  const smallest = reproduced ? await shrink(input, isShown, SHRINKING) : input
  tell({ type: 'finding', found: { kind, key, message, input: smallest, reproduced } })
}

async function shows(input: Json, key: string): Promise<boolean> {
  const fresh = await fuzzed.open(watch)
  const { findings } = await attempt(fresh, input)
  return [...findings, ...(await closed(fresh))].some((each) => each.key === key)
}

/** What goes wrong when a target is closed is a finding too. */
async function closed(running: Running): Promise<readonly Finding[]> {
  try {
    await withinTime(running.close(), CLOSE_MS, 'Closing the target')
  } catch (error) {
    watch.add(error)
  }
  await turn()
  return watch.take()
}

function checkPrototypes(): void {
  for (const [index, prototype] of SHARED.entries()) {
    const names = Reflect.ownKeys(prototype)
    if (names.length === SHARED_KEYS[index]) continue
    const added = names.slice(SHARED_KEYS[index])
    watch.report('pollution', `A shared prototype has ${added.map(String).join(', ')}.`)
    for (const name of added) Reflect.deleteProperty(prototype, name)
  }
}

/** Returns what to compare with from now on: the first measurement, for which everything was used once. */
async function checkMemory(base: number): Promise<number> {
  const bytes = await heapBytes()
  heapMb = mb(bytes)
  if (base === Number.POSITIVE_INFINITY) return bytes
  const most = base + SLACK_BYTES + (fuzzed.keepsBytes ?? KEEPS_BYTES)
  if (bytes > most)
    tellMemory(`After ${ran} inputs the heap has ${mb(bytes)} MB; after ${MEASURE_EVERY} it had ${mb(base)} MB.`)
  return base
}

async function heapBytes(): Promise<number> {
  for (let times = 0; times < 2; times += 1) {
    await turn()
    globalThis.gc?.()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function mb(bytes: number): number {
  return Math.round(bytes / 1_048_576)
}

function tellMemory(message: string): void {
  const { kind, key } = new Finding('memory', message)
  if (keys.has(key)) return
  keys.add(key)
  tell({ type: 'finding', found: { kind, key, message, input: null, reproduced: false } })
}

function readCorpus(): Json[] {
  const folder = `${settings.corpus}/${settings.target}`
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return names
    .toSorted()
    .map((name) => (JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as { input: Json }).input)
}

function tell(message: ChildMessage): void {
  if (message.type === 'finding' && process.send === undefined) console.log(clipped(JSON.stringify(message)))
  if (process.connected) process.send?.(message)
}
