// Runs tasks through the engine. Each is created by a call, takes two steps, asks, is answered, takes two more steps and completes, all
// through `app.dispatch`.
import { importBuilt } from './dist.mjs'

const { rally } = await importBuilt('index.js')

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}
const schema = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] }
const answers = { confirm: { action: 'accept', content: { confirm: true } } }

/** The versions of a task's record when it has asked, and when it is completed. */
const asked = 2
const completed = 4

/** How often every task that is waited for is read, whether or not there was an event: events may be lost. */
const pollMilliseconds = 1000
/** With many at a time, a task may wait for its turn. */
const giveUpMilliseconds = 30_000

export class Engine {
  #app
  #store
  #versions = new Map()
  #waiting = new Map()
  #poll = setInterval(() => {
    for (const wake of this.#waiting.values()) wake(true)
  }, pollMilliseconds)

  constructor(store, tasks = {}) {
    this.#store = store
    // As in production: strict checks make every await slower.
    const keys = ['a secret of the benchmark of tasks']
    // All tasks have one owner, and a run makes more of them than a caller may store.
    const limits = { maxTaskBytes: 2 ** 40 }
    this.#app = rally({ name: 'bench', version: '1.0.0', keys, store, tasks, limits, strict: false })
    this.#app.tool('deploy', { task: 'always', asks: { confirm: schema } }, async (_args, io) => {
      await io.step('build', async () => 'built')
      await io.step('test', async () => 'tested')
      const { confirm } = await io.ask('confirm', 'Deploy to production?')
      await io.step('deploy', async () => 'deployed')
      await io.step('tell', async () => 'told')
      return confirm === true ? 'Deployed' : 'Left as it was'
    })
    store.tasks.watch((event) => {
      if (event.type !== 'changed' || !this.#versions.has(event.id)) return
      this.#versions.set(event.id, event.version)
      this.#waiting.get(event.id)?.(false)
    })
  }

  /** Runs `count` tasks, `atATime` at a time. Rejects if one has a wrong result. */
  async lives(count, atATime) {
    let left = count
    const some = async () => {
      while (left > 0) {
        left -= 1
        await this.life()
      }
    }
    await Promise.all(Array.from({ length: atATime }, some))
  }

  async close() {
    clearInterval(this.#poll)
    this.#app.drain()
    await this.#app.idle()
    await this.#store.close()
  }

  /** Starts the worker, which otherwise starts with the first task. */
  async warm() {
    await this.life()
  }

  /** Searches the response text instead of parsing it: parsing is the client's work, in a process of its own. */
  async life() {
    const [, taskId] = /"taskId":"([^"]+)"/.exec(await this.#ask('tools/call', { name: 'deploy', arguments: {} }))
    this.#versions.set(taskId, 0)
    await this.#at(taskId, asked, '"inputRequests":{"confirm":')
    await this.#ask('tasks/update', { taskId, inputResponses: answers })
    await this.#at(taskId, completed, '"text":"Deployed"')
    this.#versions.delete(taskId)
  }

  /** Reads the task when it has this version, and checks that it contains this text. */
  async #at(taskId, version, says) {
    for (const until = performance.now() + giveUpMilliseconds; ;) {
      const isLate = this.#versions.get(taskId) < version && (await this.#changed(taskId))
      if (!isLate && this.#versions.get(taskId) < version) continue
      const text = await this.#ask('tasks/get', { taskId })
      if (text.includes(says)) return
      if (!isLate || performance.now() > until) throw new Error(`The task should say ${says}: ${text}`)
    }
  }

  #changed(taskId) {
    return new Promise((resolve) => {
      this.#waiting.set(taskId, (isLate) => {
        this.#waiting.delete(taskId)
        resolve(isLate)
      })
    })
  }

  async #ask(method, params) {
    const { text } = await this.#app.dispatch({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } })
    if (text.includes('"error":')) throw new Error(`${method}: ${text}`)
    return text
  }
}
