// What has become of tasks, told at once in this process and soon in the others that have the file open.
import type { TaskEvent } from '../store.ts'
import { Watchers } from '../watchers.ts'
import { fromPlain } from '../plain-text.ts'
import type { Database, Statement } from './driver.ts'
import type { Others } from './external-writes.ts'
import { SQL } from './task-statements.ts'

interface ChangedRow {
  readonly id: string
  readonly version: number
  readonly is_due: number
  readonly change_number: number
}

export class SqliteNews {
  readonly #others: Others
  readonly #watchers = new Watchers<TaskEvent>()
  readonly #last: Statement
  readonly #changed: Statement
  /** The last change that has been told of. Some of its own are told again when it looks for those of others. */
  #told = 0
  #unfollow: (() => void) | undefined

  constructor(database: Database, others: Others) {
    this.#others = others
    this.#last = database.prepare(SQL.lastChange)
    this.#changed = database.prepare(SQL.changedSince)
  }

  tell(news: TaskEvent): void {
    this.#watchers.tell(news)
  }

  watch(listener: (news: TaskEvent) => void): () => void {
    if (this.#unfollow === undefined) {
      const [row] = this.#last.all([]) as { number: number }[]
      this.#told = row?.number ?? 0
      this.#unfollow = this.#others.follow(() => this.#tellNew())
    }
    const stop = this.#watchers.add(listener)
    return () => {
      stop()
      if (this.#watchers.size > 0) return
      this.#unfollow?.()
      this.#unfollow = undefined
    }
  }

  #tellNew(): void {
    for (;;) {
      const rows = this.#changed.all([this.#told]) as ChangedRow[]
      const last = rows.at(-1)
      if (last === undefined) return
      this.#told = last.change_number
      for (const { id, version } of rows) this.#watchers.tell({ type: 'changed', id: fromPlain(id), version })
      if (rows.some(({ is_due: isDue }) => isDue === 1)) this.#watchers.tell({ type: 'due' })
    }
  }
}
