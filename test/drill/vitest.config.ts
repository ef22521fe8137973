// What `npm run drill` runs: too long, and too much a matter of the machine, for every run of the tests.
import { mergeConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

export default mergeConfig(
  { ...base, test: { ...base.test, include: [], typecheck: { enabled: false } } },
  { test: { include: ['test/drill/*.drill.ts'], fileParallelism: false, disableConsoleIntercept: true } },
)
