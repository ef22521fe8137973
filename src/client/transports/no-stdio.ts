// The stdio transport of browsers and Workers, which start no processes.
import { shown } from '../../protocol/text.ts'
import { wrongOption } from '../errors.ts'
import type { ServerCommand } from './child.ts'

/** Called with `new`, like the transport of Node. */
export function StdioTransport({ command }: ServerCommand): never {
  throw wrongOption(
    `connect(): this platform cannot start the command ${shown(command)}. Pass the URL of a server, or an app.`,
  )
}
