// Clients of the model: each takes one flow, or one fork of it, from round to round, through a network that loses and doubles messages.
import { INTERNAL_ERROR } from '../../src/protocol/errors.ts'
import { META_IDEMPOTENCY_KEY } from '../../src/protocol/revisions/2026-07-28.ts'
import type { Random } from '../../src/testing/random.ts'
import { WITH_TASKS } from '../tasks/caller.ts'
import { META } from '../wire/messages.ts'
import type { Arriving, Instance, Weather } from './instance.ts'
import type { FlowPlan, Response, ServedRequest, StateNode, World } from './world.ts'
import { questionsIn } from './world.ts'

export interface ClientHost {
  readonly world: World
  readonly weather: Weather
  readonly instances: readonly Instance[]
  /** True if no instance has the first version any more. */
  readonly lostVersions: boolean
  roll(...name: (string | number)[]): Random
  /** Planted: gives the response to another request than its own. */
  readonly misroute: ((to: ServedRequest, response: Response) => Response) | undefined
}

/** How long a client waits for a response before it sends the same request again. */
const PATIENCE_MS = 4_000
const RETRY_MS = 150
const POLL_MS = 400
const MOST_VERSION_TRIES = 10

const SALT = /^\w+/

type Outgoing = Pick<Arriving, 'message' | 'principal' | 'isForged'>

/** How a client's flow ended. */
export type End = { readonly kind: 'done' | 'task' | 'refused' | 'failed'; readonly why?: string }

export class Client {
  readonly plan: FlowPlan
  /** The states that it was given, the oldest first. */
  readonly states: StateNode[] = []
  end: End | undefined
  taskId: string | undefined
  readonly #host: ClientHost
  /** Marks its answers: those of a fork differ. */
  readonly #salt: string
  /** The idempotency key of its first round. Some clients have none. */
  readonly #callKey: string | undefined
  #sends = 0
  /** Only responses to the latest round count. */
  #rounds = 0

  constructor(host: ClientHost, plan: FlowPlan, salt: string) {
    this.plan = plan
    this.#host = host
    this.#salt = salt
    this.#callKey = plan.number % 2 === 0 ? `call-${plan.number}-of-${salt}`.padEnd(22, '-') : undefined
  }

  /** Makes the call. */
  start(): void {
    this.#round(undefined)
  }

  /** Continues from an older state, with answers of its own. */
  forkFrom(node: StateNode): void {
    this.states.push(node)
    this.#take(node)
  }

  /** Sends a request that it has sent before, or could have sent, once more. Nobody waits for the response. */
  replay(node: StateNode, changes: Partial<Outgoing> & { token?: string; args?: object; tool?: string } = {}): void {
    const { token = node.token, args, tool, isForged = false, principal = this.plan.principal } = changes
    const answers = this.#answersTo(node, this.#host.roll('replay', this.plan.number, (this.#sends += 1)))
    const message = this.#message(answers.wire, token, { tool, args })
    const request = newRequest(this.plan, node, answers)
    this.#send(request, { message, principal, isForged }, { respond: () => {} })
  }

  /** Sends a round, and sends it again until a response comes. Each attempt waits longer. */
  #round(node: StateNode | undefined, answers: Answers = NO_ANSWERS): void {
    const { clock } = this.#host.world
    const round = (this.#rounds += 1)
    const outgoing = {
      message: this.#message(answers.wire, node?.token),
      principal: this.plan.principal,
      isForged: false,
    }
    let attempts = 0
    const attempt = (): void => {
      if (this.#rounds !== round || this.end !== undefined) return
      attempts += 1
      const own = attempts
      const again = (): void => void (own === attempts && attempt())
      const respond = (response: Response, next: StateNode | undefined): void => {
        if (this.#rounds !== round || this.end !== undefined) return
        if (response.error !== undefined && this.#mayRetry(response.error, attempts))
          return clock.after(RETRY_MS, again, NOWHERE)
        this.#rounds += 1
        this.#taken(response, next)
      }
      const refused = (): void => clock.after(RETRY_MS, again, NOWHERE)
      // Nothing tells whether a lost first request was carried out. Sent again, it is another flow.
      const callKey = node === undefined ? this.#callKey : undefined
      this.#send({ ...newRequest(this.plan, node, answers), callKey }, outgoing, { respond, refused })
      clock.after(PATIENCE_MS * attempts, again, NOWHERE)
    }
    attempt()
  }

  /** The right instance may answer the same request the next time. */
  #mayRetry(error: NonNullable<Response['error']>, attempts: number): boolean {
    if (error.data?.code !== 'VERSION_CHANGED') return isPassing(error)
    return !this.#host.lostVersions || attempts < MOST_VERSION_TRIES
  }

  #message(
    answers: Answers['wire'],
    token?: string,
    { tool = this.plan.tool, args }: { tool?: string | undefined; args?: object | undefined } = {},
  ): object {
    const params = {
      name: tool,
      arguments: args ?? { call: this.plan.number },
      ...(answers.size > 0 && { inputResponses: Object.fromEntries(answers) }),
      ...(token !== undefined && { requestState: token }),
    }
    const meta = token === undefined && this.#callKey !== undefined ? { [META_IDEMPOTENCY_KEY]: this.#callKey } : {}
    return requestOf('tools/call', params, meta)
  }

  /** Sends a request to some instance, or to two. */
  #send(request: ServedRequest, outgoing: Outgoing, to: Receiver): void {
    const { world, weather, instances } = this.#host
    const random = this.#host.roll('net', this.plan.number, this.#salt, (this.#sends += 1))
    const copies = random.chance(weather.doubled) ? 2 : 1
    if (copies === 2) world.fault('request doubled')
    for (let copy = 0; copy < copies; copy += 1) {
      if (random.chance(weather.loss)) {
        world.fault('request lost')
        continue
      }
      const own = copy === 0 ? request : { ...request, seen: new Map<string, string>() }
      const delay = random.next() * weather.delayMs
      const choice = random.next()
      const backMs = random.next() * weather.delayMs
      const isLost = random.chance(weather.loss)
      world.clock.after(
        delay,
        () => {
          const open = instances.filter(({ accepts }) => accepts)
          const instance = open[Math.floor(choice * open.length)]
          if (instance === undefined) return to.refused?.()
          world.clock.scene = { place: instance, cause: { request: own } }
          if (instance.stalledUntil > world.clock.now) {
            const wait = instance.stalledUntil - world.clock.now
            return world.clock.after(wait, () => this.#deliver(instance, own, outgoing, to, { backMs, isLost }))
          }
          this.#deliver(instance, own, outgoing, to, { backMs, isLost })
        },
        NOWHERE,
      )
    }
  }

  #deliver(
    instance: Instance,
    request: ServedRequest,
    outgoing: Outgoing,
    to: Receiver,
    { backMs, isLost }: { backMs: number; isLost: boolean },
  ): void {
    const { world, misroute } = this.#host
    instance.serve(request, outgoing, (own) => {
      const response = misroute?.(request, own) ?? own
      const next = to.check === undefined ? world.responded(request, instance, response) : to.check(response)
      if (isLost) return world.fault('response lost')
      world.clock.after(backMs, () => to.respond(response, next), NOWHERE)
    })
  }

  #taken({ result, error }: Response, next: StateNode | undefined): void {
    if (error !== undefined) return this.#ends({ kind: 'refused', why: error.data?.code ?? error.message })
    if (result?.['resultType'] === 'task') {
      this.taskId = String(result['taskId'])
      return this.#poll()
    }
    if (next !== undefined) {
      this.states.push(next)
      return this.#take(next)
    }
    if (result?.['isError'] === true) return this.#ends({ kind: 'failed', why: JSON.stringify(result['content']) })
    this.#ends({ kind: 'done' })
  }

  /** Thinks about the questions of a state, and sends the answers. */
  #take(node: StateNode): void {
    const random = this.#host.roll('think', this.plan.number, this.#salt, this.states.length)
    const isSlow = random.chance(0.02)
    const thinkMs = node.questions.size === 0 ? 20 : isSlow ? 30_000 : random.next() * 600
    this.#host.world.clock.after(
      thinkMs,
      () => {
        this.#round(node, this.#answersTo(node, random))
      },
      NOWHERE,
    )
  }

  /** Answers the questions: most of them, rightly or declining, and now and then wrongly. */
  #answersTo({ questions, sent: earlier }: Pick<StateNode, 'questions' | 'sent'>, random: Random): Answers {
    const wire = new Map<string, object>()
    const sent = new Map<string, string | undefined>()
    for (const [key, text] of questions) {
      const isAskedAgain = earlier.has(text)
      // A question that is never answered fails the call, as it should.
      if (wire.size > 0 && random.chance(0.2)) continue
      if (!isAskedAgain && random.chance(0.05)) {
        wire.set(key, { action: 'accept', content: { v: 5 } })
        // So that it is answered rightly the next time.
        sent.set(text, 'wrong')
      } else if (!isAskedAgain && random.chance(0.1)) {
        wire.set(key, { action: 'decline' })
        sent.set(text, undefined)
      } else {
        const answer = `${this.#salt}${random.chance(0.5) ? '' : '+'} ${text}`
        wire.set(key, { action: 'accept', content: { v: answer } })
        sent.set(text, answer)
      }
    }
    return { wire, sent }
  }

  /** Asks how the task is, and answers its questions, until it ends. */
  #poll(): void {
    const id = this.taskId ?? ''
    this.#taskRequest('tasks/get', {}, (response) => {
      const { result, error } = response
      if (error !== undefined && !isPassing(error)) return this.#ends({ kind: 'refused', why: error.message })
      const status = result?.['status']
      if (status === 'completed' || status === 'failed' || status === 'cancelled') {
        return this.#ends({ kind: 'task', why: JSON.stringify(result) })
      }
      if (status === 'input_required') this.#answerTask(id, result ?? {})
      this.#host.world.clock.after(POLL_MS, () => this.#poll(), NOWHERE)
    })
  }

  #answerTask(id: string, shown: Record<string, unknown>): void {
    const known = this.#host.world.task(id)
    if (known === undefined) return
    const random = this.#host.roll('task', this.plan.number, this.#salt, (this.#sends += 1))
    const { wire, sent } = this.#answersTo({ questions: questionsIn(shown), sent: known.sent }, random)
    for (const [text, answer] of sent) known.sent.set(text, new Set([...(known.sent.get(text) ?? []), answer]))
    this.#taskRequest('tasks/update', { inputResponses: Object.fromEntries(wire) }, () => {})
  }

  /** The client gives the task up. */
  cancelTask(): void {
    const known = this.#host.world.task(this.taskId ?? '')
    if (known === undefined || this.end !== undefined) return
    known.cancelled = true
    this.#taskRequest('tasks/cancel', {}, () => {})
  }

  /** Looks at the task once more, long after it has ended. */
  lookAgain(): void {
    if (this.taskId !== undefined) this.#taskRequest('tasks/get', {}, () => {})
  }

  #taskRequest(method: string, params: object, taken: (response: Response) => void): void {
    const { world } = this.#host
    const id = this.taskId ?? ''
    let isTaken = false
    const take = (response: Response): void => {
      if (isTaken) return
      isTaken = true
      taken(response)
    }
    const lost = (): void => take({ error: { code: 0, message: LOST } })
    const sentAt = world.clock.now
    const check = ({ result }: Response): undefined => {
      if (method === 'tasks/get' && result !== undefined) world.taskShown(id, result, sentAt)
    }
    const message = requestOf(method, { taskId: id, ...params })
    const outgoing = { message, principal: this.plan.principal, isForged: false }
    this.#send(newRequest(this.plan, undefined, NO_ANSWERS), outgoing, { respond: take, refused: lost, check })
    world.clock.after(PATIENCE_MS, lost, NOWHERE)
  }

  #ends(end: End): void {
    this.end = end
    this.#host.world.tell(
      () => `call ${this.plan.number} of ${SALT.exec(this.#salt)?.[0] ?? ''} ends: ${end.kind} ${end.why ?? ''}`,
    )
  }
}

interface Receiver {
  respond(response: Response, next: StateNode | undefined): void
  /** Nothing listens there, so nothing was done. */
  refused?(): void
  /** Checks the response instead of the check of rounds. */
  check?(response: Response): undefined
}

interface Answers {
  /** By key, as the wire has them. */
  readonly wire: ReadonlyMap<string, object>
  /** By the text of the question. */
  readonly sent: ReadonlyMap<string, string | undefined>
}

const NO_ANSWERS: Answers = { wire: new Map(), sent: new Map() }
const NOWHERE = { place: undefined, cause: undefined }
const LOST = 'No response came.'

/** The server could not do it now: the same request may be sent again. */
function isPassing({ code, message, data }: NonNullable<Response['error']>): boolean {
  return (code === INTERNAL_ERROR && data?.code === undefined) || message === LOST
}

function newRequest(plan: FlowPlan, from: StateNode | undefined, { wire, sent }: Answers): ServedRequest {
  const answersText = JSON.stringify([...wire])
  return { plan, from, answers: sent, answersText, seen: new Map(), passes: 0, startedAt: 0, detaching: false }
}

let lastId = 0

function requestOf(method: string, params: object, meta: object = {}): object {
  lastId += 1
  return { jsonrpc: '2.0', id: lastId, method, params: { ...params, _meta: { ...META, ...WITH_TASKS, ...meta } } }
}
