// Node's HTTP server, except that nobody is cut off: Node takes a connection for idle as soon as the whole response was
// given to it, and closes it even where a slow reader has most of that still to come.
import type { RequestListener } from 'node:http'
import { Server } from 'node:http'
import type { Socket } from 'node:net'

export class PatientServer extends Server {
  readonly #sockets = new Set<Socket>()

  constructor(listener: RequestListener) {
    super(listener)
    this.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** None while a response is on its way out: Node does not say which connection it is on. `close` calls this too. */
  override closeIdleConnections(): void {
    for (const { writableLength } of this.#sockets) if (writableLength > 0) return
    super.closeIdleConnections()
  }

  /** Those on which nothing was ever said, as browsers open them in advance: to Node their first request is under way. */
  closeSilentConnections(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
  }
}
