// The limits on what callers make this server keep: their sizes, and the share of one caller.
import { INTERNAL_ERROR, ProtocolError, RallyError } from '../protocol/errors.ts'
import type { NoRoom } from '../protocol/shared-limit.ts'
import type { UsageProblem } from '../store/usage.ts'

/** How much a client may send and keep open. */
export interface LimitOptions {
  /** The longest JSON-RPC id and progress token, in bytes. Default 1 024. */
  maxIdBytes?: number
  /** The longest URI of a resource, in bytes. Default 8 192. */
  maxUriBytes?: number
  /** The `_meta` of a request, as far as a handler reads it or a task stores it, in bytes. Default 16 384. */
  maxMetaBytes?: number
  /** Open `subscriptions/listen` streams. Default 10 000. */
  maxSubscriptions?: number
  /** The URIs of one subscription, or of one older session, in bytes. Default 262 144. */
  maxSubscriptionBytes?: number
  /** The URIs of all subscriptions, and those of all older sessions, in bytes. Default 33 554 432 for each of the two. */
  maxSubscribedBytes?: number
  /** Sessions of older clients that an instance remembers something about. Default 10 000. */
  maxSessions?: number
  /** How long an instance remembers a session without requests and streams, in milliseconds. Default 3 600 000. */
  sessionIdleMs?: number
  /** Event streams to older clients. Half of them are for calls. Default 2 000. */
  maxStreams?: number
  /** Questions to older clients that wait for an answer. Default 10 000. */
  maxQuestions?: number
  /** Requests of older clients that wait for the result of a task, and calls that wait for a page of questions. Default 1 000 for each of the two. */
  maxTaskWaits?: number
  /**
   * What waits in memory: events for streams of older clients, and the mailbox in memory, in bytes. In a mailbox that instances share:
   * what each instance stores of one principal, and of all callers without one together. Default 33 554 432 for each of the two.
   */
  maxWaitingBytes?: number
  /** Tasks of one principal that have not ended. Callers without a principal together have ten times as many. Default 1 000. */
  maxOpenTasks?: number
  /**
   * What the store holds of the tasks of one principal, in bytes: arguments, journals, answers and results. Callers without a
   * principal together have as much. Default 67 108 864.
   */
  maxTaskBytes?: number
  /**
   * What the store holds of the recorded responses of one principal, in bytes: see `once`. Callers without a principal together have
   * as much. Default 67 108 864.
   */
  maxRecordBytes?: number
  /** The part of these limits that one principal may use, or one session of a caller without a principal. Default 0.25. */
  share?: number
}

export type Limits = Required<LimitOptions>

/** The limits that owners share. */
export type SharedLimitName =
  | 'maxSubscriptions'
  | 'maxSubscribedBytes'
  | 'maxSessions'
  | 'maxStreams'
  | 'maxQuestions'
  | 'maxTaskWaits'
  | 'maxWaitingBytes'

const DEFAULTS: Limits = {
  maxIdBytes: 1_024,
  maxUriBytes: 8_192,
  maxMetaBytes: 16_384,
  maxSubscriptions: 10_000,
  maxSubscriptionBytes: 262_144,
  maxSubscribedBytes: 33_554_432,
  maxSessions: 10_000,
  sessionIdleMs: 3_600_000,
  maxStreams: 2_000,
  maxQuestions: 10_000,
  maxTaskWaits: 1_000,
  maxWaitingBytes: 33_554_432,
  maxOpenTasks: 1_000,
  maxTaskBytes: 67_108_864,
  maxRecordBytes: 67_108_864,
  share: 0.25,
}

/** Throws when a limit is not valid. */
export function readLimits(options: LimitOptions = {}): Limits {
  for (const [name, value] of Object.entries(options) as [string, number | undefined][]) {
    if (!Object.hasOwn(DEFAULTS, name)) {
      const known = Object.keys(DEFAULTS).join(', ')
      throw new RallyError('OPTION_INVALID', `\`limits.${name}\` does not exist. The limits are ${known}.`)
    }
    if (value === undefined) continue
    if (name === 'share') {
      if (!(value > 0 && value <= 1)) {
        throw new RallyError('OPTION_INVALID', `\`limits.share\` must be above 0 and at most 1, got ${value}.`)
      }
    } else if (!Number.isSafeInteger(value) || value < 1) {
      throw new RallyError('OPTION_INVALID', `\`limits.${name}\` must be a whole number of at least 1, got ${value}.`)
    }
  }
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return { ...DEFAULTS, ...Object.fromEntries(given) }
}

/** The size of a limit, and of the share of one owner. */
export function sharesOf(limits: Limits, name: SharedLimitName, part = 1): { total: number; each: number } {
  const total = Math.max(1, Math.floor(limits[name] * part))
  return { total, each: Math.max(1, Math.floor(total * limits.share)) }
}

/** What a caller is told when there is no room. `what` names the things in the plural. */
export function noRoomText(
  noRoom: NoRoom,
  what: string,
  name: SharedLimitName,
  { total, each }: { readonly total: number; readonly each: number },
): string {
  return noRoom === 'share'
    ? `Too many ${what}: one caller may use ${each} of ${total} (limits.${name}, limits.share), and this one would use more. Close what it does not need, or try again later.`
    : `Too many ${what}: all ${total} are in use (limits.${name}). Try again later.`
}

export function noRoomError(...args: Parameters<typeof noRoomText>): ProtocolError {
  return new ProtocolError(INTERNAL_ERROR, noRoomText(...args))
}

/** The limits for callers without a principal, together, allow so many more open tasks. */
const ANONYMOUS_TASKS = 10

export function taskProblem({ maxOpenTasks, maxTaskBytes }: Limits): UsageProblem {
  return (owner, { open, bytes }, wanted) => {
    const who = usersOf(owner)
    const most = owner === '' ? maxOpenTasks * ANONYMOUS_TASKS : maxOpenTasks
    if (wanted.tasks > 0 && open + wanted.tasks > most) {
      return `Too many open tasks: ${who} may have ${most} (limits.maxOpenTasks is ${maxOpenTasks}). Wait until some have ended, or cancel them.`
    }
    if (wanted.bytes > 0 && bytes + wanted.bytes > maxTaskBytes) {
      return `Too many bytes of tasks: ${who} may store ${maxTaskBytes} (limits.maxTaskBytes). Wait until some have outlived their ttl.`
    }
    return undefined
  }
}

export function recordProblem({ maxRecordBytes }: Limits): UsageProblem {
  return (owner, { bytes }, wanted) => {
    if (bytes + wanted.bytes <= maxRecordBytes) return undefined
    return `Too many bytes of recorded responses: ${usersOf(owner)} may store ${maxRecordBytes} (limits.maxRecordBytes). Wait until some have outlived their ttl.`
  }
}

function usersOf(owner: string): string {
  return owner === '' ? 'all callers without a principal together' : 'one caller'
}

/** True if the text has at most so many bytes in UTF-8. Long texts are refused by their length, without being read. */
export function fits(text: string, maxBytes: number): boolean {
  const { length } = text
  // A UTF-16 code unit has at most three bytes in UTF-8, and at least one.
  if (length * 3 <= maxBytes) return true
  return length <= maxBytes && Buffer.byteLength(text) <= maxBytes
}
