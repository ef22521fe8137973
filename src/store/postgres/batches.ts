// Groups operations on different tasks, so that they share a statement, a commit and a round trip.
//
// 1. Nothing waits for company: a call starts at once unless MAX_RUNNING statements are running. What arrives meanwhile goes together
//    into the next ones.
// 2. A statement has operations of one kind: that of the call that has waited longest.
// 3. Writes with the same key run one after the other, in the order of the calls. Reads may share a statement.
// 4. A statement gets its operations in the order of their keys. All instances lock rows in that order, so they cannot deadlock.
// 5. If a statement fails because of what is in it, each operation is tried alone: no operation fails because of another one.

export interface BatchItem {
  /** The task's id, as it is stored. */
  readonly key: string
  /** How much text it carries. */
  readonly size: number
  /** The statement for it. */
  readonly statement: string
}

/** Runs one statement for all items. Returns the results by key; a key without a result gets `undefined`. */
type Run<Item, Result> = (items: readonly Item[]) => Promise<ReadonlyMap<string, Result>>

interface Call<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result | undefined) => void
  readonly reject: (error: unknown) => void
}

/** Two: one is executed while the other is flushed to the disk. */
const MAX_RUNNING = 2
const MAX_ITEMS = 128
/** A statement takes no further item once it has so many characters. */
const MAX_SIZE = 1_000_000

export class Batches<Item extends BatchItem, Result> {
  readonly #run: Run<Item, Result>
  readonly #isOrdered: boolean
  readonly #runningKeys = new Set<string>()
  #waiting: Call<Item, Result>[] = []
  #running = 0
  #isScheduled = false

  constructor(kind: 'reads' | 'writes', run: Run<Item, Result>) {
    this.#isOrdered = kind === 'writes'
    this.#run = run
  }

  add(item: Item): Promise<Result | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#schedule()
    })
  }

  /** At the end of this turn of the event loop: calls of the same turn go together. */
  #schedule(): void {
    if (this.#isScheduled || this.#running >= MAX_RUNNING || this.#waiting.length === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      const calls = this.#take()
      if (calls.length > 0) void this.#runAll(calls)
    })
  }

  /** Removes the calls of the next statement from those that wait. */
  #take(): Call<Item, Result>[] {
    const taken: Call<Item, Result>[] = []
    const left: Call<Item, Result>[] = []
    const keys = new Set(this.#runningKeys)
    let size = 0
    for (const call of this.#waiting) {
      const { key, statement } = call.item
      const isOfKind = taken[0] === undefined || taken[0].item.statement === statement
      const fits = isOfKind && taken.length < MAX_ITEMS && size < MAX_SIZE
      if (fits && !(this.#isOrdered && keys.has(key))) {
        taken.push(call)
        size += call.item.size
      } else left.push(call)
      keys.add(key)
    }
    this.#waiting = left
    return taken.toSorted((a, b) => (a.item.key < b.item.key ? -1 : 1))
  }

  async #runAll(calls: readonly Call<Item, Result>[]): Promise<void> {
    this.#running += 1
    for (const { item } of calls) this.#runningKeys.add(item.key)
    // Calls that were left over may run beside these.
    this.#schedule()
    try {
      const results = await this.#run(calls.map(({ item }) => item))
      for (const { item, resolve } of calls) resolve(results.get(item.key))
    } catch (error) {
      if (calls.length > 1 && isOfOneItem(error)) await Promise.all(calls.map((call) => this.#runAlone(call)))
      else for (const { reject } of calls) reject(error)
    }
    for (const { item } of calls) this.#runningKeys.delete(item.key)
    this.#running -= 1
    this.#schedule()
  }

  async #runAlone({ item, resolve, reject }: Call<Item, Result>): Promise<void> {
    try {
      resolve((await this.#run([item])).get(item.key))
    } catch (error) {
      reject(error)
    }
  }
}

/**
 * True if the database rolled the statement back because of a row or a value: a deadlock with an instance of an earlier version (class
 * 40, except 40003), a value (22), a constraint (23) or a limit (54). After any other error, it may have committed, so nothing is
 * repeated.
 */
function isOfOneItem(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^(?:22|23|40|54)...$/.test(code) && code !== '40003'
}
