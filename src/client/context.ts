// What a call needs of its client.
import type { Answerers } from './answers/answerers.ts'
import type { Capability } from './capabilities.ts'
import type { ServerInfo } from './discovery.ts'
import type { Connection } from './connection.ts'
import type { Lists } from './lists.ts'
import type { Limits } from './options.ts'
import type { TaskRequests } from './tasks/requests.ts'
import type { Tools } from './tools.ts'

export interface ClientContext {
  readonly connection: Connection
  readonly lists: Lists
  readonly tools: Tools
  /** Where calls may become tasks. */
  readonly tasks: TaskRequests | undefined
  readonly limits: Limits
  readonly answerers: Answerers
  readonly can: ReadonlySet<Capability>
  readonly server: ServerInfo
}
