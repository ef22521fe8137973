// How PostgreSQL goes about a statement of the store, and what that costs.
import pg from 'pg'
import type { QueryLike } from '../../src/store/postgres/pool.ts'

/** A node of a plan, as EXPLAIN writes it in JSON. */
export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly Plans?: readonly PlanNode[]
}

export interface Explained {
  readonly plan: PlanNode
  /** Pages of tables and indexes that it looked at. */
  readonly pages: number
  /** Without planning it. */
  readonly ms: number
}

interface Explanation {
  readonly Plan: PlanNode & { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number }
  readonly 'Execution Time': number
}

/** Prepares the statement and runs it so often, each time rolled back. Returns the fastest one. */
export async function explain(client: pg.ClientBase, { text, values = [] }: QueryLike, times = 1): Promise<Explained> {
  await client.query(`PREPARE it AS ${text}`)
  const given = values.map((value) => (value === null ? 'NULL' : pg.escapeLiteral(literal(value)))).join(', ')
  const measured: Explained[] = []
  for (let time = 0; time < times; time += 1) {
    await client.query('BEGIN')
    const { rows } = await client.query<{ 'QUERY PLAN': [Explanation] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE it ${given && `(${given})`}`,
    )
    await client.query('ROLLBACK')
    const [{ Plan: plan, 'Execution Time': ms } = NOTHING] = rows[0]?.['QUERY PLAN'] ?? []
    measured.push({ plan, ms, pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] })
  }
  await client.query('DEALLOCATE it')
  return measured.toSorted((a, b) => a.ms - b.ms)[0] ?? { plan: NOTHING.Plan, ms: Infinity, pages: Infinity }
}

const NOTHING: Explanation = {
  Plan: { 'Node Type': 'none', 'Shared Hit Blocks': Infinity, 'Shared Read Blocks': Infinity },
  'Execution Time': Infinity,
}

/** All nodes of a plan. */
export function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

function literal(value: unknown): string {
  if (!Array.isArray(value)) return String(value)
  const elements = value.map((each) => (each === null ? 'NULL' : `"${String(each).replaceAll(/[\\"]/g, '\\$&')}"`))
  return `{${elements.join()}}`
}
