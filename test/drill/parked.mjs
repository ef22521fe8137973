// An instance whose tasks are parked. It tells what they cost it: the memory that it holds, and the time of a look at one.
import { EventEmitter, once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { rally } from 'mcp-rally'
import { z } from 'zod'
import { openStore } from './open-store.mjs'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

const store = openStore(JSON.parse(process.env.OPTIONS).store)
const claim = store.tasks.claim.bind(store.tasks)
/** For work, where there was none. */
const looks = new EventEmitter()
store.tasks.claim = async (turn) => {
  const task = await claim(turn)
  if (task === undefined) looks.emit('look')
  return task
}
const claimMany = store.tasks.claimMany?.bind(store.tasks)
if (claimMany !== undefined) {
  store.tasks.claimMany = async (turn, limit) => {
    const tasks = await claimMany(turn, limit)
    if (tasks.length === 0) looks.emit('look')
    return tasks
  }
}

const app = rally({ name: 'parked', version: '1.0.0', keys: ['a secret of the drill of parked tasks'], store })
app.tool('wait', { asks: { go_on: z.object({ sure: z.boolean() }) }, task: 'always' }, async (_args, io) => {
  const plan = await io.step('plan', () => 'a plan of some length, '.repeat(10))
  const { sure } = await io.ask('go_on', `Here is ${plan}. Go on?`)
  return String(sure)
})

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}

async function ask(method, params) {
  const { text } = await app.dispatch({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } })
  const { result } = JSON.parse(text)
  if (result === undefined) throw new Error(text)
  return result
}

/** Makes a task and gives its id once it is parked. */
async function park() {
  const { taskId } = await ask('tools/call', { name: 'wait', arguments: {} })
  while ((await ask('tasks/get', { taskId })).status !== 'input_required') await pause(5)
  return { parked: taskId }
}

/** Looks at each of these, looks for work twice more, and then holds what it holds. */
async function measure(ids) {
  const microseconds = []
  for (const taskId of ids) {
    const began = performance.now()
    await ask('tasks/get', { taskId })
    microseconds.push((performance.now() - began) * 1000)
  }
  for (let i = 0; i < 2; i += 1) await once(looks, 'look')
  // What was let go of may need a second time, and a moment for those that clean up.
  for (let i = 0; i < 3; i += 1) {
    collect()
    await pause(20)
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  const median = microseconds.toSorted((one, other) => one - other)[microseconds.length >> 1]
  return { held: heapUsed + external, rss, median }
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

process.on('message', async (wanted) => {
  process.send('ids' in wanted ? await measure(wanted.ids) : await park())
})
process.on('disconnect', () => process.exit())
process.send({ ready: true })
