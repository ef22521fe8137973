// One session on a connection of its own, such as standard streams. Everything is sent on it, in order. Several clients may share it,
// if a gateway in front of them starts one process for all.
import { INVALID_REQUEST, isPublicProtocolError, ProtocolError } from '../protocol/errors.ts'
import type { LegacyConnection, LegacyWire } from '../server/legacy.ts'
import { errorReply, internalError, resultReply } from '../server/reply.ts'
import type { Resolved, ResolvedRequest } from '../server/resolve.ts'
import { resolve } from '../server/resolve.ts'
import { isResponse } from '../server/message-kind.ts'
import type { ChangeEvent } from '../server/subscriptions.ts'
import type { CarriedCalls } from './carried/index.ts'
import { carriesState } from './carried/index.ts'
import type { LegacyHost, Outlet } from './host.ts'
import { initializeText, readInitialize } from './initialize.ts'
import { notified, respond } from './methods.ts'
import { withMethod } from './rounds.ts'
import { newSessionId } from './session-id.ts'
import { batchProblem, Session } from './session.ts'

export class Connection implements LegacyConnection {
  readonly #host: LegacyHost
  readonly #carried: CarriedCalls
  readonly #wire: LegacyWire
  readonly #outlet: Outlet
  readonly #closed: (session: Session | undefined) => void
  #session: Session | undefined
  /** True once the client has sent `notifications/initialized`: it takes notifications from then on. */
  #isReady = false

  constructor(
    host: LegacyHost,
    carried: CarriedCalls,
    wire: LegacyWire,
    closed: (session: Session | undefined) => void,
  ) {
    this.#host = host
    this.#carried = carried
    this.#wire = wire
    this.#closed = closed
    this.#outlet = {
      send: (text) => {
        wire.send(text)
        return true
      },
      notify: (text) => wire.notify(text),
    }
  }

  receive(message: Resolved, ended: () => void = () => {}): void {
    const batch: unknown = message.message
    if (!Array.isArray(batch)) {
      void this.#answer(message).then((text) => {
        ended()
        if (text !== undefined) this.#wire.send(text)
      })
      return
    }
    // Before any work is spent on its messages, of which there may be millions.
    const problem = batchProblem(batch, this.#session?.revision)
    if (problem !== undefined) {
      ended()
      return this.#wire.send(errorReply(undefined, invalid(problem)).text)
    }
    const { registry } = this.#host.app
    void Promise.all(batch.map((each) => this.#answer(resolve(registry, each)))).then((texts) => {
      ended()
      const responses = texts.filter((text) => text !== undefined)
      if (responses.length > 0) this.#wire.send(`[${responses.join(',')}]`)
    })
  }

  /** Notifies the client of a change that it subscribed to. */
  tell(change: ChangeEvent): void {
    const text = this.#isReady
      ? this.#session?.notificationOf(change, (uri) => this.#host.app.registry.scopesOf(uri))
      : undefined
    if (text !== undefined) this.#wire.notify(text)
  }

  interrupt(): void {
    for (const call of this.#session?.calls.values() ?? []) call.interrupt()
  }

  close(): void {
    for (const call of this.#session?.calls.values() ?? []) call.cancel.cancel()
    this.#closed(this.#session)
  }

  async #answer(given: Resolved): Promise<string | undefined> {
    const session = this.#session
    const { caller } = this.#wire
    const message = withMethod(this.#host, session?.revision, given)
    if (isResponse(message)) {
      // A response is never answered, even an unexpected one: the client could take the answer for a response of its own.
      if (session === undefined) return undefined
      if (carriesState(message)) void this.#carried.resumeOnConnection(this.#outlet, session, caller, message.message)
      else this.#host.asks.take(session, message.message)
      return undefined
    }
    try {
      if (message.kind === 'invalid') throw message.problem
      if (message.kind === 'notification') {
        if (message.method === 'notifications/initialized') this.#isReady = true
        const cancelled = session && notified(session, message)
        if (session !== undefined && cancelled !== undefined) await this.#carried.cancel(session, [cancelled])
        return undefined
      }
      if (message.method === 'initialize') return this.#initialize(message)
      if (session === undefined) throw invalid('initialize first')
      const outlet = this.#outlet
      const suspender = this.#carried.suspenderOnConnection(outlet, session, caller)
      const reply = await respond(this.#host, {
        request: message,
        session,
        outlet,
        caller,
        suspender,
      })
      return reply?.text
    } catch (error) {
      return errorReply(message.id, isPublicProtocolError(error) ? error : internalError()).text
    }
  }

  #initialize({ id, params = {} }: ResolvedRequest): string {
    const claims = readInitialize(params, this.#host.optedIn)
    const principal = this.#wire.caller?.principal
    if (this.#session === undefined) this.#session = new Session({ ...claims, id: newSessionId() }, principal)
    else this.#session.join(claims)
    return resultReply(id, initializeText(this.#host.app, claims, principal)).text
  }
}

function invalid(why: string): ProtocolError {
  return new ProtocolError(INVALID_REQUEST, `Invalid request: ${why}`)
}
