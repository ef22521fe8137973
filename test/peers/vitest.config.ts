import { defineConfig } from 'vitest/config'
import config from '../../vitest.config.ts'

export default defineConfig({
  ...config,
  root: new URL('../..', import.meta.url).pathname,
  test: { ...config.test, include: ['test/peers/*.peers.ts'], testTimeout: 60_000, typecheck: { enabled: false } },
})
