// The parts of a client that its calls and tasks use.
import type { Answerers } from './answers/answerers.ts'
import type { Capability } from './capabilities.ts'
import type { Connection } from './connection.ts'
import type { ServerInfo } from './discovery.ts'
import type { Lists } from './lists.ts'
import type { Route } from './negotiate.ts'
import type { Limits } from './options.ts'
import type { TaskRequests } from './tasks/requests.ts'
import type { Tools } from './tools.ts'

export interface ClientContext {
  readonly connection: Connection
  readonly lists: Lists
  readonly tools: Tools
  /** Undefined if the client was connected with `tasks: false`. */
  readonly tasks: TaskRequests | undefined
  readonly limits: Limits
  readonly answerers: Answerers
  readonly can: ReadonlySet<Capability>
  readonly server: ServerInfo
  /** See `Route`. */
  readonly callerKey: Route['callerKey']
}
