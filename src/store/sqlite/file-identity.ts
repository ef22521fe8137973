// Notices that the file of an open database was deleted or replaced. SQLite does not: it goes on with a file that has no name any more,
// and everything that is written to it is lost when the process ends.
import { statSync } from 'node:fs'
import { RallyError } from '../../protocol/errors.ts'

/** How often the file is looked at, at the most. Calls in between cost a comparison. */
const CHECK_MS = 1_000

export class FileIdentity {
  readonly #path: string
  readonly #opened: string | undefined
  #checkedAt = performance.now()
  #isChanged = false

  /** Call it as soon as the file is open. */
  constructor(path: string) {
    this.#path = path
    this.#opened = identityOf(path)
  }

  /** Throws if the file at the path is not the one that was opened. If that one comes back, all is well again. */
  check(): void {
    const now = performance.now()
    if (now - this.#checkedAt >= CHECK_MS) {
      this.#checkedAt = now
      this.#isChanged = identityOf(this.#path) !== this.#opened
    }
    if (!this.#isChanged) return
    throw new RallyError(
      'STORE_FILE_CHANGED',
      `SQLite: the file ${this.#path} was deleted or replaced while the store had it open. ` +
        'Put the file back, or restart this process to use what is there now.',
    )
  }
}

/** `undefined` if there is no file. */
function identityOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.dev}:${stat.ino}`
}
