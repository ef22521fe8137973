// Rally: this checkout, or the build that BENCH_DIST names.
import { importBuilt } from '../../dist.mjs'
import { Engine } from '../../tasks-engine.mjs'
import { servePeer } from '../process.mjs'

const { postgres } = await importBuilt('postgres.js')

await servePeer(async ({ url, connections, concurrency }) => {
  const engine = new Engine(postgres(url, { connections }), { concurrency })
  await engine.warm()
  return { life: () => engine.life() }
})
