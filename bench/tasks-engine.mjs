// Lives of tasks through the engine: each is created by a call, asks, is answered and completed, all by `app.dispatch`.
import { rally } from 'mcp-rally'

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}
const schema = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] }
const answers = { confirm: { action: 'accept', content: { confirm: true } } }

/** The versions of a task's record once it has asked, and once it is completed. */
const asked = 2
const completed = 4

/** For news that got lost. */
const lookMilliseconds = 1000

export class Engine {
  #app
  #store
  #versions = new Map()
  #waiting = new Map()

  constructor(store) {
    this.#store = store
    this.#app = rally({ name: 'bench', version: '1.0.0', keys: ['a secret of the benchmark of tasks'], store })
    this.#app.tool('deploy', { task: 'always', asks: { confirm: schema } }, async (_args, io) => {
      const { confirm } = await io.ask('confirm', 'Deploy to production?')
      return confirm === true ? 'Deployed' : 'Left as it was'
    })
    store.tasks.watch((news) => {
      if (news.type !== 'changed') return
      this.#versions.set(news.id, news.version)
      this.#waiting.get(news.id)?.()
    })
  }

  /** So many of them, so many at a time. Every one that does not come to its right end fails all. */
  async lives(count, atATime) {
    let left = count
    const some = async () => {
      while (left > 0) {
        left -= 1
        await this.#life()
      }
    }
    await Promise.all(Array.from({ length: atATime }, some))
  }

  async close() {
    this.#app.drain()
    await this.#app.idle()
    await this.#store.close()
  }

  /** What comes back is looked at, and not parsed: that is for clients to do, in processes of their own. */
  async #life() {
    const [, taskId] = /"taskId":"([^"]+)"/.exec(await this.#ask('tools/call', { name: 'deploy', arguments: {} }))
    await this.#at(taskId, asked, '"inputRequests":{"confirm":')
    await this.#ask('tasks/update', { taskId, inputResponses: answers })
    await this.#at(taskId, completed, '"text":"Deployed"')
    this.#versions.delete(taskId)
  }

  /** Looks at it once it has changed so often, and sees that it says this. */
  async #at(taskId, version, says) {
    while ((this.#versions.get(taskId) ?? 0) < version) {
      const isLost = await this.#news(taskId)
      if (isLost) break
    }
    const text = await this.#ask('tasks/get', { taskId })
    if (!text.includes(says)) throw new Error(`The task should say ${says}: ${text}`)
  }

  #news(taskId) {
    return new Promise((resolve) => {
      const settle = (isLost) => {
        clearTimeout(timer)
        this.#waiting.delete(taskId)
        resolve(isLost)
      }
      const timer = setTimeout(settle, lookMilliseconds, true)
      this.#waiting.set(taskId, () => settle(false))
    })
  }

  async #ask(method, params) {
    const { text } = await this.#app.dispatch({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } })
    if (text.includes('"error":')) throw new Error(`${method}: ${text}`)
    return text
  }
}
