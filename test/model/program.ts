// Handlers of the model: small programs that a real handler runs through `io`, and that `checkResult` can follow without it.
//
// Everything that a handler saw is in its result and in the text of each question. So what a client reads shows which step ran, under
// which version, and which answer was used for which question.
import type { Io } from 'mcp-rally'
import { Declined, elicit, inputRequired } from 'mcp-rally'
import type { OnceStore } from 'mcp-rally'
import type { StandardSchema } from '../../src/schema/standard.ts'
import type { Random } from '../../src/testing/random.ts'

export type AskOp = { readonly op: 'ask'; readonly key: string }
export type StepOp = {
  readonly op: 'step'
  readonly key: string
  readonly ms: number
  readonly fails: boolean
  /** Uses the `once` option of a step. */
  readonly once: boolean
}
export type Op =
  | AskOp
  | StepOp
  | { readonly op: 'all'; readonly ops: readonly (AskOp | StepOp)[] }
  | { readonly op: 'scope'; readonly key: string; readonly ops: readonly Op[] }
  /** Runs `ops` if the answer to the last question has an even length. */
  | { readonly op: 'when'; readonly ops: readonly Op[] }
  | { readonly op: 'yield' }
  | { readonly op: 'detach' }

export interface Program {
  readonly style: 'io' | 'by hand'
  readonly task: 'always' | 'optional' | undefined
  readonly ops: readonly Op[]
}

/** a: an answer; d: declined; s: a step that ran, by the number of its execution; f: one that failed. */
export type Value = readonly ['a', string] | readonly ['d'] | readonly ['s' | 'f', number]

/** Stands for the number of an execution that never was, because the store for single use failed. */
const STORE_FAILED = -1

/** What a handler saw, in the order of the program. */
export type Seen = (readonly [key: string, value: Value])[]

export interface Result {
  readonly flow: string
  readonly version: string
  readonly seen: Seen
}

/** The code that an instance runs: its tools' version, and the wording of their questions. */
export interface Release {
  readonly version: string
  readonly wording: (typeof WORDINGS)[number]
}

const WORDINGS = ['a', 'b'] as const

/** What happens in a run of a handler is told to the model. */
export interface Observer {
  readonly once: OnceStore
  started(flow: string): void
  stepStarted(flow: string, key: string, idempotencyKey: string): void
  /** The effect of a step. Returns the number of this execution. */
  executed(flow: string, key: string): number | Promise<never>
  /** The handler got the value of a step or a question. */
  saw(flow: string, key: string, value: Value): void
  /** The handler got an answer to a question with this text. */
  answered(text: string, answer: string): void
  detaching(flow: string): void
}

/** Written by hand: compiling a JSON Schema would take longer than a history. */
function schemaOf<T>(json: Record<string, unknown>, accepts: (value: unknown) => boolean): StandardSchema<T> {
  const validate = (value: unknown): { value: T } | { issues: { message: string }[] } =>
    accepts(value) ? { value: value as T } : { issues: [{ message: 'does not fit' }] }
  const jsonSchema = { input: () => json, output: () => json }
  return { '~standard': { version: 1, vendor: 'model', validate, jsonSchema } }
}

export const FORM = schemaOf<{ v: string }>(
  { type: 'object', properties: { v: { type: 'string' } }, required: ['v'] },
  (value) => typeof (value as { v?: unknown }).v === 'string',
)
export const INPUT = schemaOf<{ call: number }>(
  { type: 'object', properties: { call: { type: 'integer' } } },
  () => true,
)

/** The text that names a question: its key, its wording and a digest of all that the handler saw before it. */
export function questionText(key: string, wording: string, seen: Seen): string {
  return `[${key} ${wording} ${digest(JSON.stringify(seen))}]`
}

function digest(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(36)
}

/** The handler that runs a program. Returns the text of a `Result`. */
export function handlerOf(program: Program, release: Release, observer: Observer) {
  return async (_args: unknown, io: Io): Promise<ReturnType<typeof inputRequired> | string> => {
    const flow = io.uuid('flow')
    observer.started(flow)
    const runner = new Runner(flow, release, observer)
    return program.style === 'io' ? runner.throughIo(program.ops, io) : runner.byHand(program.ops, io)
  }
}

interface HandState {
  readonly at: number
  /** The text of the question that was asked last. */
  readonly asked?: string
  readonly seen: Seen
}

class Runner {
  readonly #flow: string
  readonly #release: Release
  readonly #observer: Observer

  constructor(flow: string, release: Release, observer: Observer) {
    this.#flow = flow
    this.#release = release
    this.#observer = observer
  }

  async throughIo(ops: readonly Op[], io: Io): Promise<string> {
    const seen: Seen = []
    await this.#run(ops, seen, '', io)
    return this.#result(seen)
  }

  async byHand(ops: readonly Op[], io: Io): Promise<ReturnType<typeof inputRequired> | string> {
    const state = (io.responses.state() ?? { at: 0, seen: [] }) as HandState
    const seen = [...state.seen]
    let { asked } = state
    for (let at = state.at; at < ops.length; at += 1) {
      const op = ops[at]
      if (op?.op === 'step') seen.push([op.key, await this.#step(op, '', io)])
      if (op?.op !== 'ask') continue
      const text = questionText(op.key, this.#release.wording, seen)
      // By hand, a handler has to see itself whether its question has changed.
      const answer = asked === text ? this.#answerByHand(op.key, text, io) : undefined
      if (answer === undefined) {
        const next: HandState = { at, asked: text, seen }
        return inputRequired({ inputRequests: { [op.key]: elicit(`Question ${text}`, FORM) }, state: next })
      }
      seen.push([op.key, answer])
      asked = undefined
    }
    return this.#result(seen)
  }

  #answerByHand(key: string, text: string, io: Io): Value | undefined {
    const action = io.responses.action(key)
    if (action === 'decline') return ['d']
    const answer = io.responses.accepted(key, FORM)?.v
    if (answer === undefined) return undefined
    this.#observer.answered(text, answer)
    return ['a', answer]
  }

  #result(seen: Seen): string {
    const result: Result = { flow: this.#flow, version: this.#release.version, seen }
    return JSON.stringify(result)
  }

  async #run(ops: readonly Op[], seen: Seen, prefix: string, io: Io): Promise<void> {
    for (const op of ops) {
      switch (op.op) {
        case 'ask':
        case 'step':
          seen.push([prefix + op.key, await this.#one(op, seen, prefix, io)])
          break
        case 'all': {
          const before = [...seen]
          const values = await Promise.all(op.ops.map((each) => this.#one(each, before, prefix, io)))
          for (const [index, value] of values.entries()) seen.push([prefix + (op.ops[index]?.key ?? ''), value])
          break
        }
        case 'scope':
          seen.push(
            ...(await io.scope(op.key, async (inner) => {
              const all = [...seen]
              await this.#run(op.ops, all, `${prefix}${op.key}>`, inner)
              return all.slice(seen.length)
            })),
          )
          break
        case 'when':
          if (isTaken(seen)) await this.#run(op.ops, seen, prefix, io)
          break
        case 'yield':
          await io.yield()
          break
        case 'detach':
          this.#observer.detaching(this.#flow)
          await io.detach()
          break
      }
    }
  }

  #one(op: AskOp | StepOp, seen: Seen, prefix: string, io: Io): Promise<Value> {
    return op.op === 'step' ? this.#step(op, prefix, io) : this.#ask(op.key, seen, prefix, io)
  }

  async #ask(key: string, seen: Seen, prefix: string, io: Io): Promise<Value> {
    const text = questionText(prefix + key, this.#release.wording, seen)
    let value: Value
    try {
      const { v } = await io.ask(key, `Question ${text}`, FORM)
      this.#observer.answered(text, v)
      value = ['a', v]
    } catch (error) {
      if (!(error instanceof Declined)) throw error
      value = ['d']
    }
    this.#observer.saw(this.#flow, prefix + key, value)
    return value
  }

  async #step({ key, ms, fails, once }: StepOp, prefix: string, io: Io): Promise<Value> {
    const run = async ({ idempotencyKey }: { idempotencyKey: string }): Promise<number> => {
      this.#observer.stepStarted(this.#flow, prefix + key, idempotencyKey)
      await new Promise((resolve) => setTimeout(resolve, ms))
      const execution = await this.#observer.executed(this.#flow, prefix + key)
      if (fails) throw new Error(String(execution))
      return execution
    }
    let value: Value
    try {
      const number = await io.step(key, run, once ? { once: this.#observer.once } : {})
      value = ['s', number]
    } catch (error) {
      // The store for single use may have failed instead of the step.
      const execution = Number((error as Error).message)
      value = ['f', Number.isNaN(execution) ? STORE_FAILED : execution]
    }
    this.#observer.saw(this.#flow, prefix + key, value)
    return value
  }
}

function isTaken(seen: Seen): boolean {
  const answer = seen.findLast(([, [kind]]) => kind === 'a' || kind === 'd')?.[1]
  return answer?.[0] === 'a' && answer[1].length % 2 === 0
}

/** What the model knows about a flow whose result it checks. */
export interface Known {
  /** True if some call to the store has failed. */
  readonly storeFailed: boolean
  /** True if the client sent this answer, or declined with `undefined`, to the question with this text. */
  wasSent(text: string, answer: string | undefined): boolean
  /** True if this execution was one of this step. With `once`, passes of two versions share one result. */
  wasExecuted(execution: number, step: { flow: string; key: string; version: string | undefined }): boolean
}

/** Follows the program without `io`. Returns what is wrong with the result. */
export function checkResult(program: Program, result: Result, known: Known): string | undefined {
  const { seen, flow, version } = result
  let at = 0
  let problem: string | undefined
  const next = (op: AskOp | StepOp, before: Seen, prefix: string): void => {
    const key = prefix + op.key
    const entry = seen[at]
    at += 1
    if (entry === undefined || entry[0] !== key) return void (problem ??= `"${key}" is missing`)
    const [, value] = entry
    if (op.op === 'ask') {
      const answer = value[0] === 'a' ? value[1] : undefined
      // What was recorded before a change of the wording stays.
      const isSent = WORDINGS.some((wording) => known.wasSent(questionText(key, wording, before), answer))
      if (value[0] !== 'a' && value[0] !== 'd') problem ??= `"${key}" should be an answer`
      else if (!isSent) problem ??= `"${key}" has an answer that was not given to it: ${JSON.stringify(value)}`
      return
    }
    if (op.once && value[0] === 'f' && value[1] === STORE_FAILED && known.storeFailed) return
    if (value[0] !== (op.fails ? 'f' : 's')) problem ??= `"${key}" should ${op.fails ? 'fail' : 'succeed'}`
    else if (!known.wasExecuted(value[1], { flow, key, version: op.once ? undefined : version }))
      problem ??= `"${key}" has a result that no run of it in version ${version} had: ${JSON.stringify(value)}`
  }
  const walk = (ops: readonly Op[], prefix: string): void => {
    for (const op of ops) {
      if (problem !== undefined) return
      const before = seen.slice(0, at)
      if (op.op === 'ask' || op.op === 'step') next(op, before, prefix)
      else if (op.op === 'all') for (const each of op.ops) next(each, before, prefix)
      else if (op.op === 'scope') walk(op.ops, `${prefix}${op.key}>`)
      else if (op.op === 'when' && isTaken(before)) walk(op.ops, prefix)
    }
  }
  walk(program.ops, '')
  if (problem === undefined && at < seen.length) problem = `it has ${seen.length - at} values too many`
  return problem
}

/** A random program. Its later versions have one more step. */
export function makeProgram(random: Random): (version: number) => Program {
  let keys = 0
  const key = (): string => `k${(keys += 1)}`
  const usesOnce = random.chance(0.2)
  const ask = (): AskOp => ({ op: 'ask', key: key() })
  const step = (): StepOp => ({
    op: 'step',
    key: key(),
    ms: random.chance(0.1) ? 2_000 : Math.floor(random.next() * 80) + 1,
    fails: random.chance(0.15),
    once: usesOnce && random.chance(0.7),
  })
  const one = (): AskOp | StepOp => (random.chance(0.5) ? ask() : step())
  const style = random.chance(0.15) ? 'by hand' : 'io'
  if (style === 'by hand') {
    const ops = Array.from({ length: 2 + Math.floor(random.next() * 4) }, one)
    const added = { ...step(), key: 'later' }
    return (version) => ({ style, task: undefined, ops: version > 1 ? [...ops, added] : ops })
  }
  const compound = (depth: number): Op => {
    const roll = random.next()
    if (roll < 0.45 || depth > 1) return one()
    if (roll < 0.65) return { op: 'all', ops: [one(), one(), ...(random.chance(0.3) ? [one()] : [])] }
    if (roll < 0.8) return { op: 'scope', key: key(), ops: [one(), compound(depth + 1)] }
    if (roll < 0.9) return { op: 'when', ops: [one()] }
    return { op: 'yield' }
  }
  const ops = Array.from({ length: 2 + Math.floor(random.next() * 4) }, () => compound(0))
  const becomesTask = random.chance(0.45)
  const task = becomesTask && random.chance(0.4) ? random.pick(['always', 'optional'] as const) : undefined
  if (becomesTask && task === undefined) ops.splice(Math.floor(random.next() * ops.length), 0, { op: 'detach' })
  const later: Op = { ...step(), key: 'later' }
  return (version) => ({ style, task, ops: version > 1 ? [...ops, later] : ops })
}
