// Everything that is registered of one kind, in the order of registration, and its pages.
import { INVALID_PARAMS, ProtocolError, RallyError } from '../protocol/errors.ts'

export interface Page {
  readonly listings: readonly unknown[]
  /** Asks for the next page. Absent on the last one. */
  readonly nextCursor?: string
}

export class Catalog<T extends { readonly listing: unknown }> {
  readonly #what: string
  readonly #pageSize: number
  readonly #entries = new Map<string, T>()
  /** The listing of each entry as JSON text, in the same order. */
  readonly #texts = new Map<string, string>()
  /** The first page, which is the only one that most clients ever ask for. */
  #firstText: string | undefined

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
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)
  }

  values(): Iterable<T> {
    return this.#entries.values()
  }

  page(cursor: unknown): Page {
    const start = this.#startOf(cursor)
    const nextCursor = this.#cursorAfterPage(start)
    const listings = [...this.#entries.values()].slice(start, start + this.#pageSize).map(({ listing }) => listing)
    return { listings, ...(nextCursor !== undefined && { nextCursor }) }
  }

  /** A page as JSON text, without the braces around it and the name of the list: `[...],"nextCursor":"..."`. */
  pageText(cursor: unknown): string {
    const start = this.#startOf(cursor)
    return start === 0 ? (this.#firstText ??= this.#textFrom(0)) : this.#textFrom(start)
  }

  #textFrom(start: number): string {
    const listings = `[${[...this.#texts.values()].slice(start, start + this.#pageSize).join(',')}]`
    const nextCursor = this.#cursorAfterPage(start)
    return nextCursor === undefined ? listings : `${listings},"nextCursor":"${nextCursor}"`
  }

  /** The position of the first entry that the cursor asks for. */
  #startOf(cursor: unknown): number {
    if (cursor === undefined || cursor === null) return 0
    const keys = [...this.#entries.keys()]
    const last = typeof cursor === 'string' ? keys.findIndex((key) => cursorAfter(key) === cursor) : -1
    if (last !== -1) return last + 1
    throw new ProtocolError(INVALID_PARAMS, 'Invalid cursor: this server did not issue it. Start the list again.')
  }

  #cursorAfterPage(start: number): string | undefined {
    const end = start + this.#pageSize
    if (end >= this.#entries.size) return undefined
    const last = [...this.#entries.keys()][end - 1]
    return last === undefined ? undefined : cursorAfter(last)
  }
}

/** Opaque to clients. It names an entry and not a position, so entries that are registered later shift nothing. */
function cursorAfter(key: string): string {
  return Buffer.from(key).toString('base64url')
}
