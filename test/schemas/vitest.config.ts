import { defineConfig } from 'vitest/config'
import { shared } from '../../vitest.config.ts'

export default defineConfig({
  ...shared,
  root: new URL('../..', import.meta.url).pathname,
  test: { ...shared.test, include: ['test/schemas/*.schemas.mjs'] },
})
