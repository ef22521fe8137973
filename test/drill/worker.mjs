// One instance of the kill drill. Each of its steps has an effect outside of it, keyed by the idempotency key.
import pg from 'pg'
import { z } from 'zod'
import { importBuilt, openStore } from './open-store.mjs'

const {
  store: where,
  keys,
  leaseMs,
  stepMs,
  steps,
  dist,
  hasEvents = true,
  groupLimit,
} = JSON.parse(process.env.OPTIONS)
const { rally, AuthenticationError } = await importBuilt('index', dist)
const { serve } = await importBuilt('node', dist)
const { postgres } = await importBuilt('postgres', dist)
const { sqlite } = await importBuilt('sqlite', dist)

/** Resolves once the message is out of this process, so that no way of ending it takes it back. */
const say = (message) => new Promise((resolve) => process.send(message, resolve))

const store = openStore(where, { postgres, sqlite })
const claim = store.tasks.claim.bind(store.tasks)
store.tasks.claim = async (turn) => {
  const task = await claim(turn)
  if (task?.lost) void say({ takeover: task.id })
  return task
}
const claimMany = store.tasks.claimMany?.bind(store.tasks)
if (claimMany !== undefined) {
  store.tasks.claimMany = async (turn, limit) => {
    const tasks = await claimMany(turn, limit)
    for (const { id, lost } of tasks) if (lost) void say({ takeover: id })
    return tasks
  }
}

/** How often a step fails, before its effect and after it. */
const FAILS = 0.1
/** On a busy machine a client may wait for minutes until a worker takes its state. This drill is not about states that expire. */
const STATE_SECONDS = 24 * 3600
/** Long enough to release the worker. */
const WAIT_MS = 1_100

/** How long it takes, by recorded times. */
async function took(io, name, wait) {
  const began = await io.step(`${name}/began`, () => Date.now())
  await wait()
  return (await io.step(`${name}/ended`, () => Date.now())) - began
}

/** Nobody answers it. */
function silence(io) {
  const schema = z.object({ said: z.string() })
  return io.ask('silent', 'Does anybody answer?', schema, { withinMs: WAIT_MS, otherwise: { said: '' } })
}

const takeEffect = where.file === undefined ? inDatabase(where) : byMessage()
/** Why states are refused, which a client is not told. */
const logger = {
  warn: (message, { reason } = {}) => void (message.endsWith('was refused.') && say({ refused: String(reason) })),
  error: () => {},
}

const app = rally({ name: 'drill', version: '1.0.0', keys, ttl: STATE_SECONDS, store, tasks: { leaseMs }, logger })

app.tool(
  'job',
  {
    description:
      'Adds numbers in steps that fail at random, with a sleep, a deadline, a question and an event in the middle',
    input: z.object({ job: z.number().int() }),
    asks: { begin: z.object({ from: z.number().int() }), go_on: z.object({ plus: z.number().int() }) },
    // Every second job is in one of three groups.
    ...(groupLimit && {
      task: { concurrency: { limit: groupLimit, key: ({ args }) => (args.job % 2 ? undefined : `${args.job % 3}`) } },
    }),
  },
  async ({ job }, io) => {
    // Asked in the call, so that its last round can be sent again and still makes one task.
    const { from } = await io.ask('begin', `Where does job ${job} begin?`)
    await io.detach({ required: true })
    const add = (sum, step) =>
      io.step(
        `add[${step}]`,
        async ({ idempotencyKey }) => {
          await new Promise((resolve) => setTimeout(resolve, stepMs))
          if (Math.random() < FAILS) throw new Error('It failed before its effect.')
          await takeEffect(idempotencyKey, job, step)
          if (Math.random() < FAILS) throw new Error('It failed after its effect.')
          return sum + step
        },
        // Waits of a second and more release the worker.
        { retries: 100, backoff: { firstMs: 20, maxMs: 1_500 } },
      )
    let sum = from
    const paid = hasEvents ? io.event('paid', z.object({ more: z.number().int() })) : { token: '' }
    for (let step = 1; step <= steps / 2; step += 1) sum = await add(sum, step)
    const early = [await took(io, 'nap', () => io.sleep('nap', WAIT_MS)), await took(io, 'silent', () => silence(io))]
    const { plus } = await io.ask('go_on', `Job ${job} has come to ${sum}. Go on? Token: ${paid.token}`)
    const { more = 0 } = await paid
    sum += plus + more
    for (let step = steps / 2 + 1; step <= steps; step += 1) sum = await add(sum, step)
    return `Job ${job} comes to ${sum}${early.some((ms) => ms < WAIT_MS) ? `, too early: ${early.join()}` : ''}.`
  },
)

const { port } = await serve(app, {
  port: 0,
  authenticate: (request) => {
    const principal = request.header('x-principal')
    if (principal === undefined) throw new AuthenticationError(401, 'Say who you are.')
    return { principal }
  },
})
await say({ port })
// Nobody is left to end it.
process.on('disconnect', () => process.exit())

/** A row for each effect, and one for each time that it was tried, by connections of its own. The database may be away for a while. */
function inDatabase({ url, schema }) {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pool.on('error', () => {})
  const text = `
    WITH ran AS (INSERT INTO "${schema}_ledger".runs (key) VALUES ($1))
    INSERT INTO "${schema}_ledger".effects (key, job, step) VALUES ($1, $2, $3) ON CONFLICT (key) DO NOTHING`
  return async (key, job, step) => {
    for (;;) {
      try {
        await pool.query({ name: 'effect', text, values: [key, job, step] })
        return void say({ ran: step })
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }
}

/** Told to the process that started this one, which keeps the ledger. Resolves once it is there. */
function byMessage() {
  const waiting = new Map()
  let asked = 0
  process.on('message', ({ noted }) => {
    waiting.get(noted)?.()
    waiting.delete(noted)
  })
  return (key, job, step) => {
    const ask = (asked += 1)
    process.send({ ask, key, job, step })
    return new Promise((resolve) => void waiting.set(ask, resolve))
  }
}
