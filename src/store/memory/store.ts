// A store that ends with its process: for tests, and for apps that need their tasks no longer than that.
import { MemoryOnceStore } from './once.ts'
import type { OnceStore } from '../once.ts'
import type { Mailbox } from '../mailbox.ts'
import { MemoryMailbox } from './mailbox.ts'
import { MemoryTasks } from './tasks.ts'
import type { Store, TaskStore } from '../store.ts'

export interface MemoryStoreOptions {
  /** Default `Date.now`. */
  readonly now?: () => number
  readonly mailbox?: Mailbox
}

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
