// Requests whose responses wait for their turn: a client may send further requests before it has the response to the first one. Each
// takes a few kilobytes until it is its turn, however small it was, so they are bounded.
//
// Node reports a lost connection only to the response whose turn it is. The others learn of it here.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** On one connection. */
const MAX_WAITING = 100
/** On all connections of the process. */
const MAX_WAITING_IN_ALL = 1_000

let inAll = 0
/** The responses that wait on each connection, and what to do if the connection is lost first. */
const waiting = new WeakMap<Socket, Map<ServerResponse, () => void>>()

/** Counts the response until it is its turn, or until its connection is lost. Returns `false` if too many wait already. */
export function mayWait(socket: Socket, response: ServerResponse): boolean {
  const responses = waiting.get(socket) ?? beginOn(socket)
  if (socket.destroyed || responses.size >= MAX_WAITING || inAll >= MAX_WAITING_IN_ALL) return false
  responses.set(response, () => {})
  inAll += 1
  const forget = (): void => {
    if (responses.delete(response)) inAll -= 1
  }
  // Node emits the first one when it is the turn of the response, and other servers perhaps only the second one.
  response.once('socket', forget).once('close', forget)
  return true
}

/** Calls the listener if the connection is lost while the response waits for its turn. */
export function onLost(socket: Socket, response: ServerResponse, listener: () => void): void {
  waiting.get(socket)?.set(response, listener)
}

function beginOn(socket: Socket): Map<ServerResponse, () => void> {
  const responses = new Map<ServerResponse, () => void>()
  waiting.set(socket, responses)
  socket.once('close', () => {
    const lost = [...responses.values()]
    inAll -= responses.size
    responses.clear()
    for (const listener of lost) listener()
  })
  return responses
}
