// Runs one pass of a handler and tells how it ended.
import { byHandOutcome, InputRequired } from './by-hand.ts'
import { Io } from './io.ts'
import type { Outcome, PassInput } from './pass.ts'
import { Pass } from './pass.ts'

export function runPass(input: PassInput, handler: (io: Io) => unknown): Promise<Outcome> {
  return new Promise((finish) => startPass(new Pass(input, finish), handler))
}

export function startPass(pass: Pass, handler: (io: Io) => unknown): void {
  pass.start(() => handler(new Io(pass)), conclude)
}

function conclude(value: unknown, pass: Pass): Outcome {
  return value instanceof InputRequired ? byHandOutcome(value, pass) : { kind: 'done', value }
}
