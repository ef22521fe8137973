// Everything that is registered of one kind, in the order of registration, and its pages.
import { INVALID_PARAMS, ProtocolError, RallyError } from '../protocol/errors.ts'
import type { Guarded } from './visibility.ts'

export interface Page {
  readonly listings: readonly unknown[]
  /** Asks for the next page. Absent on the last one. */
  readonly nextCursor?: string
}

export class Catalog<T extends Guarded & { readonly listing: unknown }> {
  readonly #what: string
  readonly #pageSize: number
  readonly #entries = new Map<string, T>()
  /** The listing of each entry as JSON text, in the same order. */
  readonly #texts = new Map<string, string>()
  /** The first page, which is the only one that most clients ever ask for. */
  #firstText: string | undefined
  #hasScopes = false
  #hides = false

  /** `what` names the kind in error messages, such as `tool`. */
  constructor(what: string, pageSize: number) {
    this.#what = what
    this.#pageSize = pageSize
  }

  get size(): number {
    return this.#entries.size
  }

  add(key: string, entry: T): void {
    if (this.#entries.has(key)) {
      throw new RallyError('NAME_TAKEN', `The ${this.#what} "${key}" is registered already. Use another name or URI.`)
    }
    this.#texts.set(key, JSON.stringify(entry.listing))
    this.#entries.set(key, entry)
    this.#firstText = undefined
    if (entry.scopes !== undefined && entry.scopes.length > 0) this.#hasScopes = true
    if (entry.visible !== undefined) this.#hides = true
  }

  /** True if some of it is hidden from some callers. */
  get hides(): boolean {
    return this.#hides
  }

  /** True if callers may see different lists. */
  differs(checksScopes: boolean): boolean {
    return this.#hides || (checksScopes && this.#hasScopes)
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)
  }

  values(): Iterable<T> {
    return this.#entries.values()
  }

  /** `isListed` says which entries the caller sees. Default: all of them. */
  page(cursor: unknown, isListed?: (entry: T) => boolean): Page {
    const { keys, nextCursor } = this.#select(cursor, isListed)
    const listings = keys.map((key) => this.#entries.get(key)?.listing)
    return { listings, ...(nextCursor !== undefined && { nextCursor }) }
  }

  /** A page as JSON text, without the braces around it and the name of the list: `[...],"nextCursor":"..."`. */
  pageText(cursor: unknown, isListed?: (entry: T) => boolean): string {
    const isFirst = isListed === undefined && (cursor === undefined || cursor === null)
    if (isFirst && this.#firstText !== undefined) return this.#firstText
    const { keys, nextCursor } = this.#select(cursor, isListed)
    const listings = `[${keys.map((key) => this.#texts.get(key)).join(',')}]`
    const page = nextCursor === undefined ? listings : `${listings},"nextCursor":"${nextCursor}"`
    if (isFirst) this.#firstText = page
    return page
  }

  #select(cursor: unknown, isListed?: (entry: T) => boolean): { keys: string[]; nextCursor: string | undefined } {
    const all = isListed === undefined ? this.#entries : [...this.#entries].filter(([, entry]) => isListed(entry))
    const keys = Array.from(all, ([key]) => key)
    const start = startOf(cursor, keys)
    const end = start + this.#pageSize
    const last = end < keys.length ? keys[end - 1] : undefined
    return { keys: keys.slice(start, end), nextCursor: last === undefined ? undefined : cursorAfter(last) }
  }
}

/** The position of the first entry that the cursor asks for. A caller cannot learn from a cursor whether something hidden exists. */
function startOf(cursor: unknown, keys: readonly string[]): number {
  if (cursor === undefined || cursor === null) return 0
  const last = typeof cursor === 'string' ? keys.findIndex((key) => cursorAfter(key) === cursor) : -1
  if (last !== -1) return last + 1
  throw new ProtocolError(INVALID_PARAMS, 'Invalid cursor: this server did not issue it. Start the list again.')
}

/** Opaque to clients. It names an entry and not a position, so entries that are registered later shift nothing. */
function cursorAfter(key: string): string {
  return Buffer.from(key).toString('base64url')
}
