// What is registered of one kind, in the order of registration, and its pages on the wire.
import { INVALID_PARAMS, ProtocolError, RallyError } from '../protocol/errors.ts'

export class Catalog<T extends { readonly listing: string }> {
  readonly #what: string
  readonly #pageSize: number
  readonly #entries = new Map<string, T>()
  /** The first page, which is the only one that most clients ever ask for. */
  #first: string | undefined

  /** `what` is such as `tool`, for people. */
  constructor(what: string, pageSize: number) {
    this.#what = what
    this.#pageSize = pageSize
  }

  get size(): number {
    return this.#entries.size
  }

  add(key: string, entry: T): void {
    if (this.#entries.has(key)) {
      throw new RallyError('NAME_TAKEN', `There is a ${this.#what} "${key}" already; each is unique.`)
    }
    this.#entries.set(key, entry)
    this.#first = undefined
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)
  }

  values(): Iterable<T> {
    return this.#entries.values()
  }

  /** A list of JSON texts and, where there is more, the cursor to ask for it with: `[...],"nextCursor":"..."`. */
  page(cursor: unknown): string {
    if (cursor === undefined || cursor === null) return (this.#first ??= this.#pageFrom(0))
    const keys = [...this.#entries.keys()]
    const last = typeof cursor === 'string' ? keys.findIndex((key) => cursorAfter(key) === cursor) : -1
    if (last === -1) {
      throw new ProtocolError(
        INVALID_PARAMS,
        'Invalid cursor: it is not one that this server gave. Start the list again.',
      )
    }
    return this.#pageFrom(last + 1)
  }

  #pageFrom(start: number): string {
    const entries = [...this.#entries].slice(start, start + this.#pageSize)
    const listings = `[${entries.map(([, { listing }]) => listing).join(',')}]`
    const [lastKey] = entries.at(-1) ?? []
    const more = lastKey !== undefined && start + entries.length < this.#entries.size
    return more ? `${listings},"nextCursor":"${cursorAfter(lastKey)}"` : listings
  }
}

/** Opaque to clients. It names an entry and no position, so what is registered meanwhile shifts nothing. */
function cursorAfter(key: string): string {
  return Buffer.from(key).toString('base64url')
}
