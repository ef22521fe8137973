// A store in the memory of one process. Everything in it is lost when the process ends: for tests and for trying things out.
import type { Mailbox } from '../mailbox.ts'
import type { OnceStore } from '../once.ts'
import type { Store } from '../store.ts'
import type { TaskStore } from '../tasks.ts'
import { MemoryMailbox } from './mailbox.ts'
import { MemoryOnceStore } from './once.ts'
import { MemoryTasks } from './tasks.ts'

/** Options of `new MemoryStore()`. */
export interface MemoryStoreOptions {
  /** The clock. Default `Date.now`. */
  readonly now?: () => number
  /** Default: a mailbox in memory, of the size that `limits.maxWaitingBytes` of the app says. */
  readonly mailbox?: Mailbox
}

/** A store in the memory of one process. Everything in it is lost when the process ends. */
export class MemoryStore implements Store {
  readonly tasks: TaskStore
  readonly once: OnceStore
  readonly mailbox: Mailbox

  constructor({ now = Date.now, mailbox = new MemoryMailbox({ now }) }: MemoryStoreOptions = {}) {
    this.tasks = new MemoryTasks(now)
    this.once = new MemoryOnceStore(now)
    this.mailbox = mailbox
  }

  async close(): Promise<void> {}
}
