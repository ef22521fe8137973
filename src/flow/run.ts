// Runs one pass of a handler and tells how it ended.
import { Io } from './io.ts'
import type { Outcome, PassInput } from './pass.ts'
import { Pass } from './pass.ts'

export function runPass(input: PassInput, handler: (io: Io) => unknown): Promise<Outcome> {
  return new Promise((finish) => {
    const pass = new Pass(input, finish)
    pass.start(() => handler(new Io(pass)))
  })
}
