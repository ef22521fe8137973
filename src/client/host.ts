// What a call needs of its client.
import type { Answerers } from './answers/answerers.ts'
import type { Capability } from './capabilities.ts'
import type { ServerInfo } from './discovery.ts'
import type { Link } from './link.ts'
import type { Lists } from './lists.ts'
import type { Limits } from './options.ts'
import type { TaskWire } from './tasks/wire.ts'
import type { Tools } from './tools.ts'

export interface Host {
  readonly link: Link
  readonly lists: Lists
  readonly tools: Tools
  /** Where calls may become tasks. */
  readonly tasks: TaskWire | undefined
  readonly limits: Limits
  readonly answerers: Answerers
  readonly can: ReadonlySet<Capability>
  readonly server: ServerInfo
}
