// graphile-worker has jobs, and neither steps nor questions. The work before the question is one job and the work after it another one,
// which the answer adds. It records no result of a step, no question and no result: this is less than what the others do.
//
// The process that ran the first job is the client that answers, because a job may run in any process.
import { Logger, run } from 'graphile-worker'
import { servePeer } from '../process.mjs'

const isBatched = process.env.BENCH_BATCHED === 'true'
/** What its documentation recommends for many short jobs. */
const batched = { concurrentJobs: 24, localQueue: { size: 64 }, completeJobBatchDelay: 0 }

await servePeer(async ({ url, connections }) => {
  const done = new Map([
    ['begin', () => void runner.addJob('end', { confirm: true })],
    ['end', () => {}],
  ])
  const runner = await run({
    connectionString: url,
    maxPoolSize: connections,
    concurrency: connections - 2,
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    preset: { worker: isBatched ? batched : { concurrentJobs: connections - 2 } },
    taskList: { begin: async () => {}, end: async () => {} },
  })
  runner.events.on('job:complete', ({ job, error }) => {
    if (error) throw error
    done.get(job.task_identifier)()
  })
  return {
    /** Each life that ends here is followed by another one, until `isOver`. */
    lives: (count, isOver, counts) => {
      const begin = () => {
        counts.begun += 1
        void runner.addJob('begin', {})
      }
      done.set('end', () => {
        counts.ended += 1
        if (!isOver()) begin()
      })
      for (let i = 0; i < count; i += 1) begin()
    },
  }
})
