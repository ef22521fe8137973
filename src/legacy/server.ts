// Serves 2025-era clients with the same handlers, over HTTP and on connections of their own. The connection is the carrier.
import type { Pass } from '../flow/pass.ts'
import { Underway } from '../flow/underway.ts'
import { SharedLimit } from '../protocol/shared-limit.ts'
import type { AppServices } from '../server/context.ts'
import type { Legacy, LegacyConnection, LegacyOptions, LegacyRequest, LegacyWire } from '../server/legacy.ts'
import { sharesOf } from '../server/limits.ts'
import type { Reply } from '../server/reply.ts'
import type { Resolved } from '../server/resolve.ts'
import type { ChangeEvent, ScopesOf } from '../server/subscriptions.ts'
import { Asks, TaskWaits } from './asks.ts'
import { CarriedCalls } from './carried/index.ts'
import { Connection } from './connection.ts'
import type { LegacyHost } from './host.ts'
import { HttpSessions } from './http.ts'
import type { Session } from './session.ts'
import { Sessions } from './session.ts'
import { Streams } from './streams.ts'

const DEFAULT_ASK_MS = 300_000
const DEFAULT_CALL_MS = 3_600_000
const DEFAULT_KEEP_MS = 300_000

export class LegacyServer implements Legacy {
  readonly #app: AppServices
  readonly #host: LegacyHost
  readonly #carried: CarriedCalls
  readonly #sessions: Sessions
  readonly #streams: Streams
  readonly #http: HttpSessions
  readonly #connections = new Set<Connection>()
  #unwatch: (() => void) | undefined

  /** `optedIn` are draft revisions that are served beside the released ones. */
  constructor(app: AppServices, options: LegacyOptions = {}, optedIn: readonly string[] = []) {
    const { askMs = DEFAULT_ASK_MS, callMs = DEFAULT_CALL_MS, keepMs = DEFAULT_KEEP_MS, mailbox } = options
    const { limits, now } = app
    this.#app = app
    this.#sessions = new Sessions({ limits, now, forgotten: (session) => this.#release(session) })
    this.#host = {
      app: { ...app, serverMeta: '{}' },
      underway: new Underway<Pass>(),
      asks: new Asks(limits),
      waits: new TaskWaits(limits),
      subscribed: new SharedLimit({
        ...sharesOf(limits, 'maxSubscribedBytes'),
        evict: (session) => {
          session.unsubscribeAll()
          this.#sessions.settle(session)
        },
      }),
      askMs,
      callMs,
      optedIn,
      settle: (session) => this.#sessions.settle(session),
    }
    this.#carried = new CarriedCalls(this.#host, { mailbox, keepMs })
    this.#streams = new Streams({
      keepMs,
      now,
      limits,
      forgotten: (session) => {
        this.#sessions.settle(session)
        this.#watch()
      },
    })
    this.#http = new HttpSessions({
      host: this.#host,
      carried: this.#carried,
      sessions: this.#sessions,
      streams: this.#streams,
    })
  }

  /** What this instance remembers, so that a test can see that it forgets in time. */
  get held(): { sessions: number; streams: number; asks: number; waits: number; connections: number } {
    return {
      sessions: this.#sessions.size,
      streams: this.#streams.size + this.#carried.readers,
      asks: this.#host.asks.size,
      waits: this.#host.waits.size,
      connections: this.#connections.size,
    }
  }

  post(message: Resolved, request: LegacyRequest): Promise<Reply | undefined> {
    this.#app.tasks?.start()
    return this.#http.post(message, request)
  }

  async get(request: LegacyRequest): Promise<Reply> {
    const reply = await this.#http.get(request)
    this.#watch()
    return reply
  }

  connect(wire: LegacyWire): Promise<LegacyConnection> {
    const connection: Connection = new Connection(this.#host, this.#carried, wire, (session) => {
      this.#connections.delete(connection)
      if (session !== undefined) this.#release(session)
      this.#watch()
    })
    this.#connections.add(connection)
    this.#watch()
    return Promise.resolve(connection)
  }

  drain(): void {
    this.#streams.endStandalone()
    this.#carried.drain()
    this.#host.waits.end()
    this.#watch()
  }

  interrupt(): void {
    for (const connection of this.#connections) connection.interrupt()
    for (const session of this.#sessions.values()) for (const call of session.calls.values()) call.interrupt()
  }

  /** Listens for changes while there is a client to notify. */
  #watch(): void {
    const hasListeners = this.#connections.size + this.#streams.standalone > 0
    if (hasListeners) this.#unwatch ??= this.#app.subscriptions.watch((change) => this.#tell(change))
    if (hasListeners || this.#unwatch === undefined) return
    this.#unwatch()
    this.#unwatch = undefined
  }

  /** Ends what only a session keeps going that nobody can use any more. */
  #release(session: Session): void {
    this.#host.subscribed.delete(session.owner, session)
    for (const followed of session.progress.values()) followed.stop()
    session.progress.clear()
  }

  #tell(change: ChangeEvent): void {
    const scopesOf: ScopesOf = (uri) => this.#app.registry.scopesOf(uri)
    for (const connection of this.#connections) connection.tell(change)
    for (const session of this.#sessions.values()) {
      const text = session.standalone && session.notificationOf(change, scopesOf)
      if (text !== undefined) session.standalone?.send(text)
    }
  }
}
