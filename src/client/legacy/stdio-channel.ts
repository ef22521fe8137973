// A child process, which a session lasts as long as.
import { lost } from '../errors.ts'
import type { StdioTransport } from '../transports/stdio.ts'
import type { Channel, ChannelEvents } from './channel.ts'

/** Goes on with the process that has been asked already. */
export function stdioChannel(
  transport: StdioTransport,
  { receive, sessionLost, eventsMissed }: ChannelEvents,
): Channel {
  transport.takeOver(receive, () => {
    sessionLost()
    eventsMissed()
  })
  return {
    send: (request, callbacks) => transport.send(request, callbacks),
    notify: async (text) => {
      if (!transport.say(text)) throw lost('the server does not listen any more')
    },
    useRevision: () => {},
    listen: async () => true,
    close: () => transport.close(),
  }
}
