// Faults of every kind, planted so that a test sees the harness find each of them. Never part of a run unless it is named.
import { setImmediate as turn } from 'node:timers/promises'
import { target } from '../harness/target.ts'

type Input = { fault: string; noise: number[] }

const SHARED: object = Object.prototype
const kept: unknown[] = []

export const planted = target<Input>({
  name: 'planted',
  isDrill: true,
  limitMs: 1_000,
  mostCpuMs: 200,
  generate: (random) => ({ fault: 'none', noise: random.list(0, 5, () => random.int(9)) }),
  // A fault is planted once: most of them end the process.
  mutate: (random, { noise }) => ({ fault: 'none', noise: [...noise.slice(-20), random.int(9)] }),
  open: async (watch) => ({
    async run({ fault, noise }) {
      await turn()
      // The one that no single input shows.
      if (noise.includes(3)) kept.push(Array.from({ length: 32_000 }, () => 1.5))
      if (!noise.includes(7)) return ['nothing']
      if (fault === 'crash') process.exit(3)
      if (fault === 'loop') for (;;) JSON.stringify(noise)
      if (fault === 'never') await new Promise(() => {})
      if (fault === 'busy')
        for (const since = process.cpuUsage(); process.cpuUsage(since).user < 300_000;) JSON.stringify(noise)
      if (fault === 'rejects') void Promise.reject(new Error('planted'))
      if (fault === 'throws') throw new TypeError('planted')
      if (fault === 'leaks') watch.checkLeaks('{"error":"x at Object.y (/srv/app)"}')
      if (fault === 'pollutes') Reflect.defineProperty(SHARED, 'planted', { value: 1, configurable: true })
      return [fault]
    },
    close: async () => {},
  }),
})
