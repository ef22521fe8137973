// Requests whose responses wait for their turn: a client may send further requests before it has the response to the first one. Each
// takes a few kilobytes until it is its turn, however small it was, so they are bounded.
//
// Node reports a lost connection only to the response whose turn it is. The others learn of it here.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The most on one connection. */
const MOST = 100
/** The most on all connections of the process. */
const MOST_IN_ALL = 1_000

let inAll = 0
/** With what to do if the connection is lost first. */
const waiting = new WeakMap<Socket, Map<ServerResponse, () => void>>()

/** Counts the response until it is its turn, or until its connection is lost. Returns `false` if too many wait already. */
export function mayWait(socket: Socket, response: ServerResponse): boolean {
  const responses = waiting.get(socket) ?? beginOn(socket)
  if (socket.destroyed || responses.size >= MOST || inAll >= MOST_IN_ALL) return false
  responses.set(response, () => {})
  inAll += 1
  // Node emits it when it is the turn of the response.
  response.once('socket', () => {
    if (responses.delete(response)) inAll -= 1
  })
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
