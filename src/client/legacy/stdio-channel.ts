// A child process, which a session lasts as long as.
import { lost } from '../errors.ts'
import type { StdioTransport } from '../transports/stdio.ts'
import type { Channel, ChannelEvents } from './channel.ts'

/** Goes on with the process that has been asked already. */
export function stdioChannel(transport: StdioTransport, { receive, gone, missed }: ChannelEvents): Channel {
  transport.takeOver(receive, () => {
    gone()
    missed()
  })
  return {
    send: (request, waiter) => transport.send(request, waiter),
    say: async (text) => {
      if (!transport.say(text)) throw lost('the server does not listen any more')
    },
    begin: () => {},
    listening: async () => true,
    close: () => transport.close(),
  }
}
