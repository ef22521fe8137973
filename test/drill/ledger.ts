// What the steps of a drill did outside of the store: each effect once by its idempotency key, and every time that it was tried.
import pg from 'pg'

export interface Effect {
  readonly key: string
  readonly job: number
  readonly step: number
}

export interface Tally {
  /** Effects that were taken, each under a key of its own. */
  readonly effects: number
  /** Steps of jobs that had any. As many as effects, unless a step had two keys. */
  readonly steps: number
  /** How often a step ran, counted where it took its effect. */
  readonly runs: number
}

export interface Ledger {
  tally(): Promise<Tally>
}

/** In the process of the drill. */
export class MemoryLedger implements Ledger {
  #runs = 0
  readonly #effects = new Map<string, string>()
  readonly #waiting = new Map<number, () => void>()

  note({ key, job, step }: Effect): void {
    this.#runs += 1
    this.#effects.set(key, `${job} ${step}`)
    this.#waiting.get(this.#effects.size)?.()
  }

  /** Resolves once there are so many effects. */
  reaches(effects: number): Promise<void> {
    if (this.#effects.size >= effects) return Promise.resolve()
    return new Promise((resolve) => void this.#waiting.set(effects, resolve))
  }

  async tally(): Promise<Tally> {
    return { effects: this.#effects.size, steps: new Set(this.#effects.values()).size, runs: this.#runs }
  }
}

/** Beside the tables of the store, which the workers write by connections of their own. */
export class PostgresLedger implements Ledger {
  readonly #url: string
  readonly #schema: string

  constructor(url: string, schema: string) {
    this.#url = url
    this.#schema = `"${schema}_ledger"`
  }

  async setUp(): Promise<void> {
    await this.#ask(`
      CREATE SCHEMA ${this.#schema};
      CREATE TABLE ${this.#schema}.effects (key text PRIMARY KEY, job int NOT NULL, step int NOT NULL);
      CREATE TABLE ${this.#schema}.runs (key text NOT NULL);`)
  }

  async drop(): Promise<void> {
    await this.#ask(`DROP SCHEMA ${this.#schema} CASCADE`)
  }

  async tally(): Promise<Tally> {
    const [row] = await this.#ask(`
      SELECT (SELECT count(*) FROM ${this.#schema}.effects)::int AS effects,
        (SELECT count(DISTINCT (job, step)) FROM ${this.#schema}.effects)::int AS steps,
        (SELECT count(*) FROM ${this.#schema}.runs)::int AS runs`)
    return row as unknown as Tally
  }

  async #ask(text: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client(this.#url)
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      await client.end()
    }
  }
}
