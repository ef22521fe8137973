// What this process is busy with, over all its HTTP endpoints: bodies being read, requests being served, and what requests keep that
// only wait. Past a limit, requests are refused at once (503) instead of waiting without bound.
//
// 1. A request counts with the bytes of its body until it has ended: as one that is served, or as one that waits.
// 2. No principal uses more than half of what is served at a time, nor more than a quarter of what requests may keep that wait.
import { getHeapStatistics } from 'node:v8'
import { ByteBudget } from '../protocol/byte-buffer.ts'
import { INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import { checkLimits } from '../protocol/options.ts'
import type { NoRoom } from '../protocol/shared-limit.ts'
import { NOBODY, SharedLimit } from '../protocol/shared-limit.ts'
import { Unavailable } from '../protocol/unavailable.ts'
import type { Reply } from '../server/reply.ts'
import { errorReply } from '../server/reply.ts'
import { Backlog } from './backlog.ts'

export interface LoadOptions {
  /**
   * How many requests are served at a time, over all endpoints of the process. Past it a request gets a 503, and one of a principal
   * that uses half of them. As many may wait for `authenticate`. Default 1 000.
   */
  maxInFlight?: number
  /**
   * How long a request may wait to be served because the event loop is busy with others, in milliseconds. Past it further requests
   * get a 503. Default 1 000.
   */
  maxLagMs?: number
  /**
   * How many bytes the bodies of all requests may take that are being read or served, or that wait. Past it the largest one that is
   * being read gets a 503; one of up to 16 KiB never does. One principal may use half of it for what is served. Requests that wait,
   * such as subscriptions, may use half of it, and those of one principal a quarter of that. Default: a thirty-second of the heap's
   * limit, because a parsed body takes up to 20 times its size, and at least two of the largest bodies.
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
  readonly tooManyOfOne: Reply
  readonly tooManyBytesOfOne: Reply
  readonly tooSlow: Reply
  /** The bytes of the bodies that requests keep while they wait. */
  readonly held: SharedLimit<Served>
}

interface BusyReply extends Reply {
  /** The whole response as it is sent over HTTP 1.1 on a connection that stays open. Made once: a refusal must cost little. */
  readonly bytes: Uint8Array
}

const DEFAULT_MAX_IN_FLIGHT = 1_000
const DEFAULT_MAX_LAG_MS = 1_000
const DEFAULT_BODY_MS = 30_000
const HEAP_SHARE = 32
/** One principal may use this part of what is served at a time. */
const SERVED_SHARE = 0.5
/** Requests that wait may use this part of the bytes, so that there is always room to read others. */
const HELD_PART = 0.5
/** One principal may use this part of that. */
const HELD_SHARE = 0.25
/** For a platform that does not tell the limit of its heap. */
const UNKNOWN_HEAP_BYTES = 1024 * 1024 * 1024

/** A share of the heap's limit, in bytes. */
export function heapShare(divisor: number): number {
  return Math.floor((getHeapStatistics().heap_size_limit || UNKNOWN_HEAP_BYTES) / divisor)
}

/** How many bytes may be kept of what was received, if the largest single part has so many. */
export function bufferedBytes(largest: number): number {
  return Math.max(heapShare(HEAP_SHARE), 2 * largest)
}

/** `maxBodyBytes` is the largest single body, for which there is always room. */
export function loadLimits(options: LoadOptions, maxBodyBytes: number): LoadLimits {
  const {
    maxInFlight = DEFAULT_MAX_IN_FLIGHT,
    maxLagMs = DEFAULT_MAX_LAG_MS,
    maxBufferedBytes = bufferedBytes(maxBodyBytes),
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
    tooManyOfOne: busy(`one caller may use half of ${maxInFlight} requests at a time (\`maxInFlight\`)`),
    tooManyBytesOfOne: busy(
      `the bodies of one caller's requests may take half of ${maxBufferedBytes} bytes (\`maxBufferedBytes\`)`,
    ),
    tooSlow: timedOut(bodyMs),
    held: new SharedLimit<Served>({
      total: Math.floor(maxBufferedBytes * HELD_PART),
      each: Math.floor(maxBufferedBytes * HELD_PART * HELD_SHARE),
      pick: () => undefined,
    }),
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

/** A request that is being served, or waits. */
export interface Served {
  readonly limits: LoadLimits
  readonly caller: { readonly principal: string } | undefined
  /** The bytes of its body while it counts. Set by `Load`. */
  servedBytes: number | undefined
  /** How many parts of it wait. If there are any, it does not count as served. Set by `Load`. */
  holds: number
}

/** What is served for one principal. */
interface Usage {
  requests: number
  bytes: number
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
  #identifying = 0
  /** By principal. Callers without one are not told apart. */
  readonly #usages = new Map<string, Usage>()
  #now = 0
  #timer: NodeJS.Timeout | undefined
  #idleSweeps = 0

  /** The reply to a request that must be refused now. */
  refusal({ maxInFlight, tooMany, maxLagMs, tooLate }: LoadLimits): BusyReply | undefined {
    if (this.#inFlight >= maxInFlight) return tooMany
    return this.backlog.waitMs > maxLagMs ? tooLate : undefined
  }

  /** Counts a request until it is known who sent it. Returns the reply if too many wait for that already. */
  beginIdentifying({ maxInFlight, tooMany }: LoadLimits): Reply | undefined {
    if (this.#identifying >= maxInFlight) return tooMany
    this.#identifying += 1
    return undefined
  }

  endIdentifying(): void {
    this.#identifying -= 1
  }

  /** The reply to a request of a principal that uses its part of what is served already. */
  refusalOf(principal: string, bytes: number, limits: LoadLimits): Reply | undefined {
    const usage = this.#usages.get(principal)
    if (usage === undefined) return undefined
    if (usage.requests >= limits.maxInFlight * SERVED_SHARE) return limits.tooManyOfOne
    return usage.bytes + bytes > limits.maxBufferedBytes * SERVED_SHARE ? limits.tooManyBytesOfOne : undefined
  }

  /** Counts the request as served until `leave`. */
  enter(request: Served, bytes: number): void {
    this.#inFlight += 1
    if (request.caller !== undefined) this.#use(request.caller.principal, 1, bytes)
    this.bytes.take(bytes)
    request.servedBytes = bytes
  }

  /** The request was answered. Does nothing while it waits, and when it is called again. */
  leave(request: Served): void {
    if (request.servedBytes === undefined || request.holds > 0) return
    this.#endServing(request, request.servedBytes)
    this.bytes.release(request.servedBytes)
    request.servedBytes = undefined
  }

  /**
   * The request only waits from now on, and keeps what came with it until as many calls of `release`. Returns the reason if there is no
   * room for that: then it counts as served, as before.
   */
  hold(request: Served): string | undefined {
    const { servedBytes, limits } = request
    if (servedBytes !== undefined && request.holds === 0) {
      const { held } = limits
      const owner = ownerOf(request)
      const noRoom = held.makeRoom(owner, servedBytes)
      if (noRoom !== undefined) return noRoomToWait(noRoom, held)
      this.#endServing(request, servedBytes)
      held.set(owner, request, servedBytes)
    }
    request.holds += 1
    return undefined
  }

  /** A request that waits keeps this many bytes more until it has ended. Returns the reason if there is no room for them. */
  keep(request: Served, bytes: number): string | undefined {
    const { servedBytes, limits } = request
    if (servedBytes === undefined || request.holds === 0) return undefined
    const { held } = limits
    const owner = ownerOf(request)
    const noRoom = held.makeRoom(owner, bytes)
    if (noRoom !== undefined) return noRoomToWait(noRoom, held)
    held.set(owner, request, servedBytes + bytes)
    this.bytes.take(bytes)
    request.servedBytes = servedBytes + bytes
    return undefined
  }

  release(request: Served): void {
    request.holds -= 1
    if (request.holds > 0 || request.servedBytes === undefined) return
    request.limits.held.delete(ownerOf(request), request)
    this.bytes.release(request.servedBytes)
    request.servedBytes = undefined
  }

  #endServing({ caller }: Served, bytes: number): void {
    this.#inFlight -= 1
    if (caller !== undefined) this.#use(caller.principal, -1, -bytes)
  }

  #use(principal: string, requests: number, bytes: number): void {
    const usage = this.#usages.get(principal)
    if (usage === undefined) {
      this.#usages.set(principal, { requests, bytes })
      return
    }
    usage.requests += requests
    usage.bytes += bytes
    if (usage.requests === 0) this.#usages.delete(principal)
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

function ownerOf({ caller }: Served): string {
  return caller?.principal ?? NOBODY
}

function noRoomToWait(noRoom: NoRoom, { total, each }: SharedLimit<Served>): string {
  const what = 'Too many bytes of requests that wait'
  return noRoom === 'share'
    ? `${what}: one caller may use ${each} of ${total}, which is half of \`maxBufferedBytes\`. Send less with each, or have fewer wait.`
    : `${what}: all ${total} are in use, which is half of \`maxBufferedBytes\`. Try again later.`
}

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
