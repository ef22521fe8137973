// What a store is: what an app keeps outside its process. Each of the three parts has a file that states its rules.
import type { Mailbox } from './mailbox.ts'
import type { OnceStore } from './once.ts'
import type { TaskStore } from './tasks.ts'

/** What an app keeps outside its process. Pass one to `rally()` as `store`. */
export interface Store {
  /** Keeps the tasks and their journals. */
  readonly tasks: TaskStore
  /** Used by the app option `once` and the step option `once`. */
  readonly once: OnceStore
  /** Used by 2025-era clients that fetch their results from another instance. */
  readonly mailbox: Mailbox
  /** Finishes pending writes, then ends connections and timers. Every call after it rejects. */
  close(): Promise<void>
}
