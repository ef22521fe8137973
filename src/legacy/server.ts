// The connection as carrier: serves 2025-era clients with the same handlers, over HTTP and on connections of their own.
import type { Pass } from '../flow/pass.ts'
import { Underway } from '../flow/underway.ts'
import type { AppServices } from '../server/context.ts'
import type { Legacy, LegacyConnection, LegacyOptions, LegacyRequest, LegacyWire } from '../server/legacy.ts'
import { MemoryMailbox } from '../store/memory/mailbox.ts'
import type { Reply } from '../server/reply.ts'
import type { Resolved } from '../server/resolve.ts'
import type { ChangeEvent } from '../server/subscriptions.ts'
import { Asks } from './asks.ts'
import { Connection } from './connection.ts'
import type { LegacyHost } from './host.ts'
import type { HttpSessions } from './http.ts'
import { get, post } from './http.ts'
import { Places } from './carried/event-position.ts'
import { Readers } from './carried/readers.ts'
import { SessionIds } from './session-id.ts'
import { Sessions } from './sessions.ts'
import { States } from './carried/state.ts'
import { Streams } from './streams.ts'
import { TaskWaits } from './task-waits.ts'

const DEFAULT_ASK_MS = 300_000
const DEFAULT_CALL_MS = 3_600_000
const DEFAULT_KEEP_MS = 300_000

/** In the memory of the process: who has lost the stream is back by then. */
const LOST_MS = 10_000

export class LegacyServer implements Legacy {
  readonly #app: AppServices
  readonly #host: LegacyHost
  readonly #on: HttpSessions
  readonly #connections = new Set<Connection>()
  #unwatch: (() => void) | undefined

  /** `optedIn` are draft revisions that are served beside the released ones. */
  constructor(app: AppServices, options: LegacyOptions = {}, optedIn: readonly string[] = []) {
    const { askMs = DEFAULT_ASK_MS, callMs = DEFAULT_CALL_MS, keepMs = DEFAULT_KEEP_MS } = options
    const { logger, now, seal } = app
    const { mailbox: shared } = options
    const mailbox = shared ?? new MemoryMailbox({ now })
    const sessions = new Sessions()
    this.#app = app
    this.#host = {
      app: { ...app, serverMeta: '{}' },
      underway: new Underway<Pass>(),
      asks: new Asks(),
      waits: new TaskWaits(),
      askMs,
      callMs,
      optedIn,
      states: new States(seal),
      places: new Places(seal),
      mailbox,
      // As long as the state that it came of may be sent again, so that this finds it there.
      lettersMs: shared === undefined ? keepMs : Math.max(keepMs, seal.lifetimeMs),
      askedMs: shared === undefined ? Math.min(keepMs, LOST_MS) : seal.ttl,
    }
    this.#on = {
      host: this.#host,
      ids: new SessionIds(seal, optedIn),
      sessions,
      readers: new Readers(mailbox, logger),
      streams: new Streams({
        keepMs,
        now,
        forgotten: (session) => {
          sessions.settle(session)
          this.#watch()
        },
      }),
    }
  }

  /** What is remembered here, for who wants to see that it is forgotten in time. */
  get held(): { sessions: number; streams: number; asks: number; waits: number; connections: number } {
    const { sessions, streams, readers, host } = this.#on
    return {
      sessions: sessions.size,
      streams: streams.size + readers.size,
      asks: host.asks.size,
      waits: host.waits.size,
      connections: this.#connections.size,
    }
  }

  post(message: Resolved | readonly Resolved[], request: LegacyRequest): Promise<Reply | undefined> {
    this.#app.tasks?.start()
    return post(this.#on, message, request)
  }

  async get(request: LegacyRequest): Promise<Reply> {
    const reply = await get(this.#on, request)
    this.#watch()
    return reply
  }

  connect(wire: LegacyWire): Promise<LegacyConnection> {
    const connection: Connection = new Connection(this.#host, wire, () => {
      this.#connections.delete(connection)
      this.#watch()
    })
    this.#connections.add(connection)
    this.#watch()
    return Promise.resolve(connection)
  }

  drain(): void {
    this.#on.streams.endStandalone()
    this.#on.readers.end()
    this.#host.waits.end()
    this.#watch()
  }

  interrupt(): void {
    for (const connection of this.#connections) connection.interrupt()
    for (const session of this.#on.sessions.values()) for (const call of session.calls.values()) call.interrupt()
  }

  /** Changes are listened for as long as there is somebody to tell. */
  #watch(): void {
    const anybody = this.#connections.size + this.#on.streams.standalone > 0
    if (anybody) this.#unwatch ??= this.#app.subscriptions.watch((change) => this.#tell(change))
    if (anybody || this.#unwatch === undefined) return
    this.#unwatch()
    this.#unwatch = undefined
  }

  #tell(change: ChangeEvent): void {
    for (const connection of this.#connections) connection.tell(change)
    for (const session of this.#on.sessions.values()) {
      const text = session.standalone && session.told(change)
      if (text !== undefined) session.standalone?.send(text)
    }
  }
}
