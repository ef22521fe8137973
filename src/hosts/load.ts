// What this process is busy with, over all its HTTP endpoints: bodies being read, requests being served. Past a limit, requests
// are refused at once (503) instead of waiting without bound.
import { getHeapStatistics } from 'node:v8'
import { ByteBudget } from '../protocol/byte-buffer.ts'
import { INVALID_REQUEST, ProtocolError, RallyError } from '../protocol/errors.ts'
import { shown } from '../protocol/text.ts'
import { Unavailable } from '../protocol/unavailable.ts'
import type { Reply } from '../server/reply.ts'
import { errorReply } from '../server/reply.ts'
import { Backlog } from './backlog.ts'

export interface LoadOptions {
  /** How many requests are served at a time, over all endpoints of the process. Past it a request gets a 503. Default 1 000. */
  maxInFlight?: number
  /**
   * How long a request may wait to be served because the event loop is busy with others, in milliseconds. Past it further requests
   * get a 503. Default 1 000.
   */
  maxLagMs?: number
  /**
   * How many bytes the bodies of all requests may take that are being read or served. Past it the largest one that is being
   * read gets a 503; one of up to 16 KiB never does. Default: a thirty-second of the heap's limit, because a parsed body
   * takes up to 20 times its size, and at least two of the largest bodies.
   */
  maxBufferedBytes?: number
  /** How long a client may take to send a body, in milliseconds. Past it the request gets a 408. Default 30 000. */
  bodyMs?: number
}

/** The limits of one endpoint, and what it answers past them. */
export interface LoadLimits extends Required<LoadOptions> {
  readonly tooMany: BusyReply
  readonly tooLate: BusyReply
  readonly tooManyBytes: Reply
  readonly tooSlow: Reply
}

interface BusyReply extends Reply {
  /** The whole response as it is sent over HTTP 1.1 on a connection that stays open. Made once: a refusal must cost little. */
  readonly bytes: Uint8Array
}

const DEFAULT_MAX_IN_FLIGHT = 1_000
const DEFAULT_MAX_LAG_MS = 1_000
const DEFAULT_BODY_MS = 30_000
const HEAP_SHARE = 32
/** For a platform that does not tell the limit of its heap. */
const UNKNOWN_HEAP_BYTES = 1024 * 1024 * 1024

/** A share of the heap's limit, in bytes. */
export function heapShare(divisor: number): number {
  return Math.floor((getHeapStatistics().heap_size_limit || UNKNOWN_HEAP_BYTES) / divisor)
}

/** `maxBodyBytes` is the largest single body, for which there is always room. */
export function loadLimits(options: LoadOptions, maxBodyBytes: number): LoadLimits {
  const {
    maxInFlight = DEFAULT_MAX_IN_FLIGHT,
    maxLagMs = DEFAULT_MAX_LAG_MS,
    maxBufferedBytes = Math.max(heapShare(HEAP_SHARE), 2 * maxBodyBytes),
    bodyMs = DEFAULT_BODY_MS,
  } = options
  checkLimits({ maxInFlight, maxLagMs, maxBufferedBytes, bodyMs })
  return {
    maxInFlight,
    maxLagMs,
    maxBufferedBytes,
    bodyMs,
    tooMany: busy(`${maxInFlight} requests are being served already (\`maxInFlight\`)`),
    tooLate: busy(`requests wait longer than ${maxLagMs} ms for the event loop (\`maxLagMs\`)`),
    tooManyBytes: busy(`the bodies of all requests take more than ${maxBufferedBytes} bytes (\`maxBufferedBytes\`)`),
    tooSlow: timedOut(bodyMs),
  }
}

/** Throws when a limit is not a number above 0. */
export function checkLimits(limits: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(limits)) {
    if (typeof value === 'number' && value > 0) continue
    throw new RallyError('OPTION_INVALID', `\`${name}\` must be a number above 0, got ${shown(value)}.`)
  }
}

/** A request whose body is being read. */
export interface BodyReading {
  readonly limits: LoadLimits
  /** How many bytes of it have arrived. */
  readonly received: number
  /** These are set by `Load`. */
  bodyDeadline: number
  bodyBefore: BodyReading | undefined
  bodyAfter: BodyReading | undefined
  /** Drops what was read, and answers. */
  refuseBody(reply: Reply): void
}

/** A request that is being served. */
export interface Served {
  /** The bytes of its body while it counts as served. Set by `Load`. */
  servedBytes: number | undefined
}

/** The status when a body takes too long to come. */
export const TIMED_OUT = 408

/** Bodies up to this size are read in any case, so that a few large ones cannot keep out everybody else. */
const SMALL_BODY = 16 * 1024

const SWEEP_MS = 250
const IDLE_SWEEPS = 40

export class Load {
  /** The bytes of bodies that are being read or served. */
  readonly bytes = new ByteBudget(Number.POSITIVE_INFINITY)
  /** The requests that were read and are not served yet. They count as in flight. */
  readonly backlog = new Backlog()
  /** The bodies are the links of the list: a Set with so many additions and deletions keeps old entries alive. */
  #firstBody: BodyReading | undefined
  #inFlight = 0
  #now = 0
  #timer: NodeJS.Timeout | undefined
  #idleSweeps = 0

  /** The reply to a request that must be refused now. */
  refusal({ maxInFlight, tooMany, maxLagMs, tooLate }: LoadLimits): BusyReply | undefined {
    if (this.#inFlight >= maxInFlight) return tooMany
    return this.backlog.waitMs > maxLagMs ? tooLate : undefined
  }

  /** Counts the request as served until `leave`. */
  enter(request: Served, bytes: number): void {
    this.#inFlight += 1
    this.bytes.take(bytes)
    request.servedBytes = bytes
  }

  /** The request was answered, or only waits as a stream does. A second call does nothing. */
  leave(request: Served): void {
    if (request.servedBytes === undefined) return
    this.#inFlight -= 1
    this.bytes.release(request.servedBytes)
    request.servedBytes = undefined
  }

  /** The body has to end within `bodyMs`. */
  beginBody(body: BodyReading): void {
    this.#timer ??= this.#startSweeping()
    body.bodyDeadline = this.#now + body.limits.bodyMs
    const after = this.#firstBody
    body.bodyAfter = after
    if (after !== undefined) after.bodyBefore = body
    this.#firstBody = body
  }

  /** A second call does nothing. */
  endBody(body: BodyReading): void {
    const { bodyBefore, bodyAfter } = body
    if (bodyBefore !== undefined) bodyBefore.bodyAfter = bodyAfter
    else if (this.#firstBody === body) this.#firstBody = bodyAfter
    if (bodyAfter !== undefined) bodyAfter.bodyBefore = bodyBefore
    body.bodyBefore = undefined
    body.bodyAfter = undefined
  }

  /** Refuses the largest bodies that are being read until the rest is within the limit. Small ones are always read. */
  makeRoom({ maxBufferedBytes, tooManyBytes }: LoadLimits): void {
    while (this.bytes.used > maxBufferedBytes) {
      let largest: BodyReading | undefined
      for (let each = this.#firstBody; each !== undefined; each = each.bodyAfter) {
        if (each.received > (largest?.received ?? SMALL_BODY)) largest = each
      }
      if (largest === undefined) return
      this.endBody(largest)
      largest.refuseBody(tooManyBytes)
    }
  }

  /** One timer for all bodies. It goes on for a while after the last body: requests follow one another. */
  #startSweeping(): NodeJS.Timeout {
    this.#now = performance.now()
    this.#idleSweeps = 0
    return setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  #sweep(): void {
    this.#now = performance.now()
    this.#idleSweeps = this.#firstBody === undefined ? this.#idleSweeps + 1 : 0
    if (this.#idleSweeps > IDLE_SWEEPS) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    const late: BodyReading[] = []
    for (let body = this.#firstBody; body !== undefined; body = body.bodyAfter) {
      if (body.bodyDeadline <= this.#now) late.push(body)
    }
    for (const body of late) {
      this.endBody(body)
      body.refuseBody(body.limits.tooSlow)
    }
  }
}

/** One for the process: its heap and its core are what all endpoints share. */
export const load = new Load()

function busy(why: string): BusyReply {
  const reply = errorReply(undefined, overloaded(why))
  const length = String(Buffer.byteLength(reply.text))
  const headers = { 'Content-Type': 'application/json', 'Content-Length': length, ...reply.headers }
  const lines = Object.entries({ ...headers, Connection: 'keep-alive' }).map(([name, value]) => `${name}: ${value}\r\n`)
  const bytes = Buffer.from(`HTTP/1.1 503 Service Unavailable\r\n${lines.join('')}\r\n${reply.text}`)
  return { ...reply, headers, bytes }
}

/** Nothing was done with the request. */
export function overloaded(why: string): Unavailable {
  const advice = { retryAfterMs: 1_000, isUnprocessed: true }
  return new Unavailable(`The server is overloaded: ${why}. Try again in a second.`, advice)
}

function timedOut(bodyMs: number): Reply {
  const why = `The body did not arrive within ${bodyMs} ms (\`bodyMs\`). Send the request again, and its body at once.`
  const error = new ProtocolError(INVALID_REQUEST, why)
  return { ...errorReply(undefined, error, TIMED_OUT), headers: {} }
}
