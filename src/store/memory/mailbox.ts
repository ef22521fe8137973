// The mailbox of one process: bounded in what it holds, and what nobody fetches is forgotten in time.
import { RallyError } from '../../protocol/errors.ts'
import type { StoredEvent, Mailbox } from '../mailbox.ts'

export interface MemoryMailboxOptions {
  /** Default `Date.now`. */
  readonly now?: () => number
  /** Of all letters together; the oldest boxes give way. Default 33 554 432. */
  readonly maxBytes?: number
}

interface Kept {
  readonly text: string
  readonly until: number
}

const DEFAULT_MAX_BYTES = 32 * 1024 * 1024

/** What a letter costs beside its text, so that empty ones are bounded too. */
const LETTER_BYTES = 200
const SWEEP_MS = 5_000

export class MemoryMailbox implements Mailbox {
  readonly #now: () => number
  readonly #maxBytes: number
  /** The oldest first. */
  readonly #boxes = new Map<string, Map<number, Kept>>()
  readonly #watchers = new Map<string, Set<() => void>>()
  #bytes = 0
  #sweep: NodeJS.Timeout | undefined

  constructor({ now = Date.now, maxBytes = DEFAULT_MAX_BYTES }: MemoryMailboxOptions = {}) {
    this.#now = now
    this.#maxBytes = maxBytes
  }

  /** How many letters it holds. */
  get size(): number {
    let letters = 0
    for (const box of this.#boxes.values()) letters += box.size
    return letters
  }

  async leave(box: string, number: number, text: string, keepMs: number): Promise<boolean> {
    const kept = this.#boxes.get(box)?.get(number)
    if (kept !== undefined && kept.until > this.#now()) return false
    if (kept !== undefined) this.#drop(box, number, kept)
    this.#makeRoom(costOf(text))
    const letters = this.#boxes.get(box) ?? new Map<number, Kept>()
    this.#boxes.set(box, letters)
    letters.set(number, { text, until: this.#now() + keepMs })
    this.#bytes += costOf(text)
    this.#sweep ??= setInterval(() => this.#forgetOld(), Math.min(keepMs, SWEEP_MS)).unref()
    for (const arrived of this.#watchers.get(box) ?? []) arrived()
    return true
  }

  async after(box: string, number: number): Promise<StoredEvent[]> {
    const letters: StoredEvent[] = []
    for (const [each, { text, until }] of this.#boxes.get(box) ?? []) {
      if (each > number && until > this.#now()) letters.push({ number: each, text })
    }
    return letters.toSorted((one, other) => one.number - other.number)
  }

  watch(box: string, arrived: () => void): () => void {
    const watchers = this.#watchers.get(box) ?? new Set()
    this.#watchers.set(box, watchers)
    // Its own, so that the same function may watch twice.
    const watcher = (): void => arrived()
    watchers.add(watcher)
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0 && this.#watchers.get(box) === watchers) this.#watchers.delete(box)
    }
  }

  #makeRoom(bytes: number): void {
    if (bytes > this.#maxBytes) {
      throw new RallyError(
        'MAILBOX_FULL',
        `A message of ${bytes} bytes is too large for the mailbox of this process, which holds ${this.#maxBytes}: make it smaller, or share a mailbox that takes it.`,
      )
    }
    for (const [box, letters] of this.#boxes) {
      if (this.#bytes + bytes <= this.#maxBytes) return
      for (const [number, kept] of letters) this.#drop(box, number, kept)
    }
  }

  #forgetOld(): void {
    for (const [box, letters] of this.#boxes) {
      for (const [number, kept] of letters) if (kept.until <= this.#now()) this.#drop(box, number, kept)
    }
  }

  #drop(box: string, number: number, { text }: Kept): void {
    const letters = this.#boxes.get(box)
    if (letters?.delete(number)) this.#bytes -= costOf(text)
    if (letters?.size === 0) this.#boxes.delete(box)
    if (this.#boxes.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}

function costOf(text: string): number {
  return Buffer.byteLength(text) + LETTER_BYTES
}
