// What is known of each call that waits in a page: a record for every round, in the mailbox that all instances share.
//
// 1. The channel of a call derives from its id and its principal, so another principal finds nothing.
// 2. The first record of a round stays. A round that runs again cannot change what the page and the model were told.
// 3. Where a call came from is found by its id alone, for a page that knows nothing else. The page then checks who opened it.
import type { InputRequests } from '../protocol/messages.ts'
import { NOBODY } from '../protocol/shared-limit.ts'
import { digest } from '../seal/canonical.ts'
import type { RequestContext } from '../server/context.ts'
import type { StoredSource } from '../server/source.ts'
import type { Mailbox } from '../store/mailbox.ts'

export type CallRecord = AskingRecord | TaskRecord | DoneRecord

/** The call waits for the user. */
export interface AskingRecord {
  readonly kind: 'asks'
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** Sealed, as a client of 2026-07-28 would carry it. */
  readonly state: string
  readonly questions: InputRequests
}

/** The call has become a task. The store of tasks knows the rest. */
export interface TaskRecord {
  readonly kind: 'task'
  readonly tool: string
  readonly taskId: string
}

/** The call has ended. */
export interface DoneRecord {
  readonly kind: 'done'
  readonly tool: string
  readonly result: Readonly<Record<string, unknown>>
}

/** A call and whose it is. */
export interface CallKey {
  readonly id: string
  readonly principal: string | undefined
}

/** Where a call came from, for the rounds that a page by a link runs: as for a task, it is what the first request said. */
export interface CallOrigin {
  readonly source: StoredSource
  /** Whose share of the mailbox the call uses. */
  readonly owner: string
  /** True if the host checks scopes. */
  readonly overHttp: boolean
}

export interface LatestRecord {
  /** Rises with every round. */
  readonly round: number
  readonly record: CallRecord
}

const LONGEST_ID = 64

export class CallRecords {
  readonly #mailbox: Mailbox
  readonly #keepMs: number

  constructor(mailbox: Mailbox, keepMs: number) {
    this.#mailbox = mailbox
    this.#keepMs = keepMs
  }

  async write(call: CallKey, round: number, record: CallRecord, owner: string): Promise<void> {
    await this.#mailbox.leave(channelOf(call), round, JSON.stringify(record), this.#keepMs, owner)
  }

  async latest(call: CallKey): Promise<LatestRecord | undefined> {
    const event = (await this.#mailbox.after(channelOf(call), 0)).at(-1)
    return event && { round: event.number, record: JSON.parse(event.text) as CallRecord }
  }

  /** Every round writes it again, so that it lasts as long as the records of the call. */
  async writeOrigin(id: string, round: number, origin: CallOrigin): Promise<void> {
    await this.#mailbox.leave(originOf(id), round, JSON.stringify(origin), this.#keepMs, origin.owner)
  }

  async origin(id: string): Promise<CallOrigin | undefined> {
    const event = (await this.#mailbox.after(originOf(id), 0)).at(-1)
    return event && (JSON.parse(event.text) as CallOrigin)
  }

  /** Starts to watch for a further record. `within` resolves when there may be one, or after so many milliseconds. */
  watch(call: CallKey): { within(ms: number): Promise<void>; stop(): void } {
    let timer: NodeJS.Timeout | undefined
    let stopWatching = nothing
    let wake = nothing
    const arrival = new Promise<void>((resolve) => {
      wake = resolve
      stopWatching = this.#mailbox.watch(channelOf(call), resolve)
    })
    return {
      within: async (ms) => {
        timer = setTimeout(wake, ms)
        await arrival
      },
      stop: () => {
        clearTimeout(timer)
        stopWatching()
      },
    }
  }
}

/** Whose share of the mailbox a call uses. */
export function ownerOf({ caller, mailboxOwner }: RequestContext): string {
  return caller === undefined ? (mailboxOwner ?? NOBODY) : digest(caller.principal)
}

/** Reads the untrusted id of a call. */
export function readId(id: unknown): string {
  return typeof id === 'string' ? id.slice(0, LONGEST_ID) : ''
}

function nothing(): void {}

function channelOf({ id, principal }: CallKey): string {
  return `apps ${digest(JSON.stringify([id, principal ?? null]))}`
}

function originOf(id: string): string {
  return `apps origin ${digest(id)}`
}
