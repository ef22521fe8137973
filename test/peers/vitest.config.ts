import { defineConfig } from 'vitest/config'
import { shared } from '../../vitest.config.ts'

export default defineConfig({
  ...shared,
  root: new URL('../..', import.meta.url).pathname,
  test: { ...shared.test, include: ['test/peers/*.peers.ts'], testTimeout: 60_000 },
})
