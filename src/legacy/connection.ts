// One session on a connection of its own, such as standard streams: everything goes out on it, in order.
import { INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import type { LegacyConnection, LegacyWire } from '../server/legacy.ts'
import { InvalidState } from '../seal/errors.ts'
import { errorReply, internalError, resultReply } from '../server/reply.ts'
import type { Resolved, ResolvedRequest } from '../server/resolve.ts'
import { isResponse } from '../server/resolve.ts'
import type { ChangeEvent } from '../server/subscriptions.ts'
import type { LegacyHost, Outlet } from './host.ts'
import { initializeText, readInitialize } from './initialize.ts'
import { problemOfBatch } from './messages.ts'
import { notified, respond } from './methods.ts'
import { Session } from './session.ts'
import { stateIn } from './carried/state.ts'
import { goOn, noteCancelled, openAnswer } from './carried/resume.ts'
import { newSessionId } from './session-id.ts'

export class Connection implements LegacyConnection {
  readonly #host: LegacyHost
  readonly #wire: LegacyWire
  readonly #outlet: Outlet
  readonly #closed: () => void
  #session: Session | undefined
  /** The client has said that it is ready to be told something unasked. */
  #isReady = false

  constructor(host: LegacyHost, wire: LegacyWire, closed: () => void) {
    this.#host = host
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

  receive(message: Resolved | readonly Resolved[]): void {
    if ('kind' in message) {
      void this.#answer(message).then((text) => text !== undefined && this.#wire.send(text))
      return
    }
    const problem = problemOfBatch(message, this.#session?.revision)
    if (problem !== undefined) return this.#wire.send(errorReply(undefined, invalid(problem)).text)
    void Promise.all(message.map((each) => this.#answer(each))).then((texts) => {
      const said = texts.filter((text) => text !== undefined)
      if (said.length > 0) this.#wire.send(`[${said.join(',')}]`)
    })
  }

  tell(change: ChangeEvent): void {
    const text = this.#isReady ? this.#session?.told(change) : undefined
    if (text !== undefined) this.#wire.notify(text)
  }

  interrupt(): void {
    for (const call of this.#session?.calls.values() ?? []) call.interrupt()
  }

  close(): void {
    for (const call of this.#session?.calls.values() ?? []) call.cancel.cancel()
    this.#closed()
  }

  async #answer(message: Resolved): Promise<string | undefined> {
    const session = this.#session
    if (isResponse(message)) {
      // What nobody waits for is not answered: an answer to an answer could be taken for one.
      if (session === undefined) return undefined
      if (stateIn(message.message) === undefined) this.#host.asks.take(session, message.message)
      else void this.#takeUp(session, message.message)
      return undefined
    }
    try {
      if (message.kind === 'invalid') throw message.problem
      if (message.kind === 'notification') {
        if (message.method === 'notifications/initialized') this.#isReady = true
        const cancelled = session && notified(session, message)
        if (cancelled !== undefined && session?.carriesState) await noteCancelled(this.#host, session, cancelled)
        return undefined
      }
      if (message.method === 'initialize') return this.#initialize(message)
      if (session === undefined) throw invalid('initialize first')
      const outlet = this.#outletOf(session, 0)
      return await respond(this.#host, { request: message, session, outlet, principal: undefined })
    } catch (error) {
      return errorReply(message.id, error instanceof ProtocolError ? error : internalError()).text
    }
  }

  /** The connection stays, and what comes next goes out on it: no box is needed. */
  async #takeUp(session: Session, message: Record<string, unknown>): Promise<void> {
    try {
      const answered = await openAnswer(this.#host, session, message, undefined)
      const outlet = this.#outletOf(session, answered.state.leg + 1)
      await goOn(this.#host, session, answered, outlet, undefined, (text) => this.#wire.send(text))
    } catch (error) {
      // The seal has logged why it refuses a state.
      if (!(error instanceof InvalidState)) this.#host.app.logger.error('An answer could not be taken up.', { error })
    }
  }

  #outletOf(session: Session, leg: number): Outlet {
    if (!session.carriesState) return this.#outlet
    const ask = async (text: string): Promise<boolean> => this.#outlet.send(text)
    return { ...this.#outlet, parting: { box: undefined, leg, ask } }
  }

  #initialize({ id, params = {} }: ResolvedRequest): string {
    if (this.#session !== undefined) throw invalid('the connection is initialized already')
    const claims = readInitialize(params, this.#host.optedIn)
    this.#session = new Session({ ...claims, id: newSessionId() })
    return resultReply(id, initializeText(this.#host.app, claims.revision, undefined)).text
  }
}

function invalid(why: string): ProtocolError {
  return new ProtocolError(INVALID_REQUEST, `Invalid request: ${why}`)
}
