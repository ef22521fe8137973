// A limit that owners share. What each of them uses is counted, so that one cannot use it up for the others.
//
// 1. No owner gets more than its share.
// 2. When everything is in use, the owner that uses the most makes room. Nothing of an owner that uses less is ever evicted.

export interface SharedLimitOptions<T> {
  /** For all owners together. */
  readonly total: number
  /** For one owner. Default: `total`. */
  readonly each?: number
  /** Which item of the owner that uses the most is evicted. Returns `undefined` if none may be. Default: the oldest. */
  readonly pick?: (items: Iterable<T>) => T | undefined
  /** Which item of its own an owner loses when it has used its share. Default: none, so that it is refused. */
  readonly pickOwn?: (items: Iterable<T>) => T | undefined
  /** True if an owner that uses just as much makes room too, the oldest first. Default false. */
  readonly evictsEqual?: boolean
  /** Called for an item that was evicted. It is not counted any more. */
  readonly evict?: (item: T) => void
}

/** Why there is no room: the owner has used its share, or all owners together have used everything. */
export type NoRoom = 'share' | 'total'

interface OwnedItems<T> {
  used: number
  /** What each item uses, the oldest first. */
  readonly items: Map<T, number>
}

/** Callers that cannot be told apart. They have no share: only the total holds for them. */
export const NOBODY = ''

const SESSION = 'session '

/** The owner for a session of a caller without a principal. Such a caller may begin any number of sessions. */
export function sessionOwner(name: string): string {
  return `${SESSION}${name}`
}

/** True if the owner is no principal: nobody, or a session. */
export function isAnonymous(owner: string): boolean {
  return owner === NOBODY || owner.startsWith(SESSION)
}

export class SharedLimit<T> {
  readonly #options: SharedLimitOptions<T>
  readonly #owners = new Map<string, OwnedItems<T>>()
  #total: number
  #each: number
  #used = 0

  constructor(options: SharedLimitOptions<T>) {
    this.#total = options.total
    this.#each = Math.min(options.each ?? options.total, options.total)
    this.#options = options
  }

  get total(): number {
    return this.#total
  }

  get each(): number {
    return this.#each
  }

  /** Takes effect with the next item. */
  resize(total: number, each: number): void {
    this.#total = total
    this.#each = Math.min(each, total)
  }

  get used(): number {
    return this.#used
  }

  usedBy(owner: string): number {
    return this.#owners.get(owner)?.used ?? 0
  }

  /** Evicts items until the owner has room for `cost` more. Returns why if that is not possible. */
  makeRoom(owner: string, cost: number): NoRoom | undefined {
    for (;;) {
      const wanted = this.usedBy(owner) + cost
      const isOverShare = owner !== NOBODY && wanted > this.each
      if (!isOverShare && this.#used + cost <= this.total) return undefined
      const victim = (isOverShare ? undefined : this.#greediest(owner, wanted)) ?? this.#own(owner)
      if (victim === undefined) return isOverShare ? 'share' : 'total'
      this.delete(victim.owner, victim.item)
      this.#options.evict?.(victim.item)
    }
  }

  /** Counts the item as the newest of its owner, or changes what it uses. */
  set(owner: string, item: T, cost: number): void {
    const owned = this.#owners.get(owner) ?? { used: 0, items: new Map<T, number>() }
    this.#owners.set(owner, owned)
    const change = cost - (owned.items.get(item) ?? 0)
    owned.items.set(item, cost)
    owned.used += change
    this.#used += change
  }

  /** An item that is not counted is ignored. */
  delete(owner: string, item: T): void {
    const owned = this.#owners.get(owner)
    const cost = owned?.items.get(item)
    if (owned === undefined || cost === undefined) return
    owned.items.delete(item)
    owned.used -= cost
    this.#used -= cost
    if (owned.items.size === 0) this.#owners.delete(owner)
  }

  /** What the owner that uses the most can lose, if it uses more than the one that asks for room. */
  #greediest(asking: string, wanted: number): Evictable<T> | undefined {
    const { pick = oldest, evictsEqual = false } = this.#options
    let found: Evictable<T> | undefined
    let most = evictsEqual ? wanted - 1 : wanted
    for (const [owner, { used, items }] of this.#owners) {
      if (used <= most || owner === asking) continue
      const item = pick(keysOf(items))
      if (item === undefined) continue
      found = { owner, item }
      most = used
    }
    return found
  }

  #own(owner: string): Evictable<T> | undefined {
    const items = this.#owners.get(owner)?.items
    const item = items && this.#options.pickOwn?.(keysOf(items))
    return item === undefined ? undefined : { owner, item }
  }
}

interface Evictable<T> {
  readonly owner: string
  readonly item: T
}

/** Unlike `items.keys()`, this can be read more than once. */
function keysOf<T>(items: ReadonlyMap<T, unknown>): Iterable<T> {
  return { [Symbol.iterator]: () => items.keys() }
}

export function oldest<T>(items: Iterable<T>): T | undefined {
  for (const item of items) return item
  return undefined
}
