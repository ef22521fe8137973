// Detects io calls inside a step after an await (rule 10).
import { AsyncLocalStorage } from 'node:async_hooks'

/** Created by the first strict pass: it makes every await of the process almost three times slower. */
let runningStep: AsyncLocalStorage<{ pass: object; key: string }> | undefined

/** Runs a step so that `stepAround` finds it. */
export function runInStep<T>(pass: object, key: string, run: () => T): T {
  runningStep ??= new AsyncLocalStorage()
  return runningStep.run({ pass, key }, run)
}

/** The key of the step of this pass that the current code belongs to. Works in strict passes only. */
export function stepAround(pass: object): string | undefined {
  const step = runningStep?.getStore()
  return step?.pass === pass ? step.key : undefined
}
