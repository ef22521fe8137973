// The model waits for the result of a call that asks its user (`rally_result`).
import { isObject } from '../protocol/json.ts'
import { SharedLimit } from '../protocol/shared-limit.ts'
import type { ServedInApps } from '../server/apps.ts'
import { errorText, plainText } from '../server/content.ts'
import type { AppServices } from '../server/context.ts'
import { sharesOf } from '../server/limits.ts'
import { RequestSource } from '../server/source.ts'
import type { AskedCalls } from './calls.ts'
import { ownerOf, readId } from './records.ts'
import type { CallView } from './view.ts'
import { UNKNOWN } from './view.ts'

/** How often a wait looks at what changes without a record: a task, a server that shuts down, a client that has left. */
const LOOK_MS = 1_000

interface Wait {
  readonly id: string
  readonly principal: string | undefined
  isEvicted: boolean
}

export class ResultWaits {
  readonly #app: AppServices
  readonly #calls: AskedCalls
  readonly #waitMs: number
  readonly #limit: SharedLimit<Wait>

  constructor(app: AppServices, calls: AskedCalls, waitMs: number) {
    this.#app = app
    this.#calls = calls
    this.#waitMs = waitMs
    this.#limit = new SharedLimit({
      ...sharesOf(app.limits, 'maxTaskWaits'),
      evict: (wait) => (wait.isEvicted = true),
    })
  }

  /** The text of the tool's own result, or what `waitingText` says of a call that is not done in time. */
  async result(
    served: ServedInApps,
    waitingText: (view: CallView) => string | Promise<string>,
  ): Promise<string | undefined> {
    const { request, context } = served
    const { arguments: given } = request.params ?? {}
    const principal = context.caller?.principal
    const id = readId(isObject(given) ? given['id'] : undefined)
    const owner = ownerOf(context)
    const wait: Wait = { id, principal, isEvicted: this.#limit.makeRoom(owner, 1) !== undefined }
    if (!wait.isEvicted) this.#limit.set(owner, wait, 1)
    const stop = this.#calls.listen(wait)
    try {
      const view = await this.#until(wait, served)
      if (view === undefined) return undefined
      if (view.kind === 'problem') return errorText(view.message, this.#app.serverMeta)
      if (view.kind !== 'done') {
        const text = await waitingText(view)
        return plainText({ content: [{ type: 'text', text }] }, this.#app.serverMeta)
      }
      this.#calls.deliver(wait)
      return plainText(view.result, this.#app.serverMeta)
    } finally {
      stop()
      this.#limit.delete(owner, wait)
    }
  }

  /** How the call stands when it is done, or when it has been waited for long enough. */
  async #until(wait: Wait, { request, info, context }: ServedInApps): Promise<CallView | typeof UNKNOWN | undefined> {
    const { caller, overHttp } = context
    const viewer = new RequestSource({ info, meta: request.meta, caller, overHttp }, this.#app.limits)
    const until = performance.now() + this.#waitMs
    for (;;) {
      const change = this.#calls.records.watch(wait)
      try {
        const found = await this.#calls.find(wait, viewer)
        if (found === undefined) return UNKNOWN
        const view = await this.#calls.view(found)
        if (view.kind === 'done') return view
        if (context.cancel?.cancelled === true) return undefined
        const left = until - performance.now()
        if (left <= 0 || wait.isEvicted || this.#app.handover.draining) return view
        await change.within(Math.min(left, LOOK_MS))
      } finally {
        change.stop()
      }
    }
  }
}
