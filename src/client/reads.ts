// The resources that were read, cached for as long as the server says that they are fresh.
import type { ReadResourceResult } from '../protocol/messages.ts'

/** Who asks: a result that the server calls private is not for another caller. */
export type CallerKey = string | undefined

interface CachedRead {
  readonly result: ReadResourceResult
  readonly size: number
  readonly freshUntil: number
  /** Undefined for a result that is for everybody. */
  readonly for: { readonly caller: CallerKey } | undefined
}

const MAX_ENTRIES = 1_000

export class Reads {
  readonly #maxSize: number
  /** By URI. The one that was not used for the longest time comes first. */
  readonly #entries = new Map<string, CachedRead>()
  #size = 0
  #changes = 0

  /** `maxSize` is in characters, for all of them together. */
  constructor(maxSize: number) {
    this.#maxSize = maxSize
  }

  /** A result that was requested before a change is not kept. */
  get changes(): number {
    return this.#changes
  }

  find(uri: string, caller: CallerKey): ReadResourceResult | undefined {
    const entry = this.#entries.get(uri)
    if (entry === undefined) return undefined
    this.#remove(uri)
    if (performance.now() >= entry.freshUntil) return undefined
    this.#add(uri, entry)
    if (entry.for !== undefined && entry.for.caller !== caller) return undefined
    return copyOf(entry.result)
  }

  /** `since` is the time of the request. */
  keep(uri: string, result: ReadResourceResult, caller: CallerKey, since: number): void {
    const { ttlMs, cacheScope } = result as { ttlMs?: unknown; cacheScope?: unknown }
    if (typeof ttlMs !== 'number' || !(ttlMs > 0)) return
    const size = uri.length + sizeOf(result)
    if (size > this.#maxSize / 4) return
    const isPublic = cacheScope === 'public'
    this.#remove(uri)
    this.#add(uri, { result: copyOf(result), size, freshUntil: since + ttlMs, for: isPublic ? undefined : { caller } })
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= this.#maxSize && this.#entries.size <= MAX_ENTRIES) return
      this.#remove(oldest)
    }
  }

  /** Removes one resource, or all. */
  drop(uri?: string): void {
    this.#changes += 1
    if (uri !== undefined) return this.#remove(uri)
    this.#entries.clear()
    this.#size = 0
  }

  #add(uri: string, entry: CachedRead): void {
    this.#entries.set(uri, entry)
    this.#size += entry.size
  }

  #remove(uri: string): void {
    this.#size -= this.#entries.get(uri)?.size ?? 0
    this.#entries.delete(uri)
  }
}

/** The caller may change the list that it gets. */
function copyOf(result: ReadResourceResult): ReadResourceResult {
  return { ...result, contents: [...result.contents] }
}

function sizeOf(result: ReadResourceResult): number {
  return JSON.stringify(result).length
}
