// One keep-alive connection of the load generator, on a raw socket. It goes through the rounds of its scenario again and
// again, each request sent once the response to the last one is complete, and checks every response.
import { once } from 'node:events'
import { connect } from 'node:net'
import { firstId, stateOf } from './requests.mjs'
import { readResponse } from './response.mjs'

let nextId = firstId

export class Connection {
  #socket
  #rounds
  #tally
  #finish
  #fail
  #pending = ''
  #round = 0
  #id = 0
  #state = ''

  static async open(port, rounds, tally) {
    const connection = new Connection(port, rounds, tally)
    await once(connection.#socket, 'connect')
    return connection
  }

  constructor(port, rounds, tally) {
    this.#rounds = rounds
    this.#tally = tally
    const onread = {
      buffer: Buffer.allocUnsafe(64 * 1024),
      callback: (length, buffer) => this.#arrived(buffer.latin1Slice(0, length)),
    }
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true, onread })
  }

  // Settles with the first response that comes after the tally was closed, or with what went wrong.
  run() {
    return new Promise((resolve, reject) => {
      this.#finish = resolve
      this.#fail = reject
      this.#socket.on('error', reject)
      this.#socket.on('close', () => reject(new Error('the server closed a connection')))
      this.#send()
    })
  }

  close() {
    this.#socket.destroy()
  }

  #send() {
    this.#id = nextId++
    this.#socket.write(this.#rounds[this.#round].textOf(this.#id, this.#state), 'latin1')
  }

  #arrived(text) {
    this.#pending = this.#pending === '' ? text : this.#pending + text
    try {
      const response = readResponse(this.#pending)
      if (response) this.#take(response)
    } catch (error) {
      this.#fail(error)
    }
    return true
  }

  #take({ status, body, end }) {
    const { marker, givesState, fixedLength } = this.#rounds[this.#round]
    if (status !== 200 || !body.includes(marker) || !body.includes(`"id":${this.#id}`))
      throw new Error(`wanted status 200, id ${this.#id} and ${marker}; got status ${status} and ${body}`)
    if (end !== this.#pending.length)
      throw new Error(`more than the one response asked for: ${this.#pending.slice(end)}`)
    const tally = this.#tally
    if (!tally.open) {
      this.#finish()
      return
    }
    tally.requests++
    tally.requestBytes += fixedLength + this.#state.length
    tally.responseBytes += body.length
    this.#pending = ''
    this.#state = givesState ? stateOf(body) : ''
    this.#round = (this.#round + 1) % this.#rounds.length
    this.#send()
  }
}
