// SQLite as part of the runtime: Node from 22.16 and 24 on, and Deno. It has the interface of the other driver.
import type { SqliteDatabase, SqliteDriver, SqliteStatement, SqliteValue } from './database.ts'

/** `node:sqlite`, as far as it is used here. */
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => NodeDatabase
}

interface NodeDatabase {
  readonly isTransaction: boolean
  exec(sql: string): void
  prepare(sql: string): NodeStatement
  close(): void
}

interface NodeStatement {
  run(...params: SqliteValue[]): { readonly changes: number | bigint }
  all(...params: SqliteValue[]): unknown[]
}

/** Returns `undefined` if this runtime does not have it, or an early version of it that lacks `isTransaction`. */
export function nodeSqlite(): SqliteDriver | undefined {
  const library = process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as NodeSqlite | undefined
  if (library === undefined || !isRecent(library)) return undefined
  const { DatabaseSync } = library
  return class implements SqliteDatabase {
    readonly #database: NodeDatabase

    constructor(path: string, { timeout }: { timeout: number }) {
      this.#database = new DatabaseSync(path)
      this.#database.exec(`PRAGMA busy_timeout = ${timeout}`)
    }

    get inTransaction(): boolean {
      return this.#database.isTransaction
    }

    exec(sql: string): void {
      this.#database.exec(sql)
    }

    prepare(sql: string): SqliteStatement {
      return new Statement(this.#database.prepare(sql))
    }

    close(): void {
      this.#database.close()
    }
  }
}

/** Only an open database has the property, not its class. */
function isRecent({ DatabaseSync }: NodeSqlite): boolean {
  const database = new DatabaseSync(':memory:')
  const has = 'isTransaction' in database
  database.close()
  return has
}

class Statement implements SqliteStatement {
  readonly #statement: NodeStatement

  constructor(statement: NodeStatement) {
    this.#statement = statement
  }

  run(params: readonly SqliteValue[]): { readonly changes: number } {
    return { changes: Number(this.#statement.run(...params).changes) }
  }

  all(params: readonly SqliteValue[]): unknown[] {
    return this.#statement.all(...params)
  }
}
