// What `npm run drill` runs: too long, and too much a matter of the machine, for every run of the tests.
import { defineConfig } from 'vitest/config'
import { shared } from '../../vitest.config.ts'

export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    include: ['test/drill/*.drill.ts'],
    fileParallelism: false,
    disableConsoleIntercept: true,
  },
})
