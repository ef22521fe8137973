// Refuses requests of a busy server before Node makes a response for them. A refusal then costs less than half: what an overloaded
// process spends on refusals is missing for the requests that it serves.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { DirectRequest } from './direct-request.ts'

/** Node's parser of a connection, as far as it is used here. */
interface Parser {
  onIncoming: (request: IncomingMessage, keepsAlive: boolean) => number
}

/** Goes on with the body, as for any other request. */
const GO_ON = 0

/** `refusal` returns the whole response if there is too much to do. Call this for each new connection. */
export function refuseEarly(socket: Socket, refusal: () => Uint8Array | undefined): void {
  const parser: unknown = Reflect.get(socket, 'parser')
  // Another runtime, or another Node: the request listener refuses, at a higher cost.
  if (!isParser(parser)) return
  const serve = parser.onIncoming
  parser.onIncoming = (request, keepsAlive) => {
    const response = refusal()
    if (response === undefined || !keepsAlive || !isOrdinary(request, socket)) return serve(request, keepsAlive)
    request.dropBody()
    socket.write(response)
    return GO_ON
  }
}

/**
 * A connection has a timeout only between two requests: so no earlier response is still to come on it, and Node closes it if nothing
 * more is sent. Its first request is for Node, which sets the timeout. So is all that needs more than a response.
 */
function isOrdinary(request: IncomingMessage, socket: Socket): request is DirectRequest {
  if (!(request instanceof DirectRequest)) return false
  const { method, rawHeaders } = request
  if (method !== 'POST' || Reflect.get(request, 'upgrade') === true || !socket.timeout || socket.writableLength > 0)
    return false
  // An author may set timeouts too. Node keeps here the response whose turn it is.
  if (Reflect.get(socket, '_httpMessage')) return false
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    if (name?.length !== EXPECT.length) continue
    const lower = name.toLowerCase()
    if (lower === EXPECT || lower === ORIGIN) return false
  }
  return true
}

const EXPECT = 'expect'
/** As long as the other one. A page in a browser reads only responses with the headers of CORS. */
const ORIGIN = 'origin'

function isParser(value: unknown): value is Parser {
  return typeof value === 'object' && value !== null && 'onIncoming' in value && typeof value.onIncoming === 'function'
}
