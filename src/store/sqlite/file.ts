// An open SQLite file, as the three parts of a store use it.
import { ExternalWrites } from './change-feed.ts'
import type { SqliteDatabase } from './driver.ts'
import type { FileIdentity } from './file-identity.ts'
import { GroupCommit } from './group-commit.ts'

export interface SqliteFileOptions {
  readonly pollMs: number
  readonly now: () => number
  /** Absent for a database in memory. */
  readonly identity?: FileIdentity | undefined
}

export class SqliteFile {
  readonly database: SqliteDatabase
  readonly commits: GroupCommit
  readonly externalWrites: ExternalWrites
  readonly now: () => number
  #closing: Promise<void> | undefined

  constructor(database: SqliteDatabase, { pollMs, now, identity }: SqliteFileOptions) {
    this.database = database
    this.commits = new GroupCommit(database, identity && (() => identity.check()))
    this.externalWrites = new ExternalWrites(database, pollMs)
    this.now = now
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    this.externalWrites.close()
    await this.commits.close()
    this.database.close()
  }
}
