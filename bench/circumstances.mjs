// When and where something was measured, for the records of the benchmarks.
import { spawnSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Call it before the measurement: the load is the average of the minute before. Above 0 there was other work. */
export function circumstances() {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit:
      spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout?.trim() || 'none',
    node: process.version,
    cpu: cpus()[0].model.trim(),
    cores: cpus().length,
    load: Number(loadavg()[0].toFixed(1)),
  }
}
