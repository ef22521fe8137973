// A server for the expenses of a company: who is calling decides what a handler does, and what a caller may see.
import type { Caller, Rally, RallyOptions } from 'mcp-rally'
import { rally, ToolError } from 'mcp-rally'
import { z } from 'zod'

declare module 'mcp-rally' {
  interface CallerClaims {
    readonly name?: string
    readonly department?: string
    /** What the caller may approve, in EUR. */
    readonly limit?: number
  }
}

export interface Expense {
  readonly id: string
  readonly by: string
  readonly department: string
  readonly amount: number
  readonly what: string
  readonly approvedBy?: string
}

/** Where expenses are kept. */
export interface Ledger {
  /** Does nothing if there is an expense with this id. */
  add(expense: Expense): Promise<void>
  find(id: string): Promise<Expense | undefined>
  list(department: string): Promise<readonly Expense[]>
  approve(id: string, by: string): Promise<void>
}

export function memoryLedger(): Ledger {
  const expenses = new Map<string, Expense>()
  return {
    add: async (expense) => void (expenses.has(expense.id) || expenses.set(expense.id, expense)),
    find: async (id) => expenses.get(id),
    list: async (department) => [...expenses.values()].filter((expense) => expense.department === department),
    approve: async (id, approvedBy) => {
      const expense = expenses.get(id)
      if (expense !== undefined) expenses.set(id, { ...expense, approvedBy })
    },
  }
}

export function expenseApp(options: Partial<RallyOptions> = {}, ledger: Ledger = memoryLedger()): Rally {
  const app = rally({ name: 'expenses', version: '1.0.0', ...options })
  addSubmit(app, ledger)
  addApprove(app, ledger)
  addReport(app, ledger)
  return app
}

function addSubmit(app: Rally, ledger: Ledger): void {
  app.tool(
    'submit_expense',
    {
      description: 'Submit an expense of the caller',
      input: z.object({ amount: z.number().positive().max(10_000), what: z.string().min(1) }),
      scopes: ['expenses:submit'],
    },
    async ({ amount, what }, io) => {
      // A token may be refreshed while the user thinks. What goes into texts and records is read in a step.
      const { principal, name, department } = await io.step('who', () => personOf(io.caller))
      const isFine = await io.confirm('sure', `${name}, should ${department} pay ${amount} EUR for ${what}?`)
      if (!isFine) return 'Nothing was submitted.'
      const id = await io.step('submit', async ({ idempotencyKey }) => {
        await ledger.add({ id: idempotencyKey, by: principal, department, amount, what })
        return idempotencyKey
      })
      return `${name} of ${department} submitted ${id}`
    },
  )
}

function addApprove(app: Rally, ledger: Ledger): void {
  app.tool(
    'approve_expense',
    {
      description: 'Approve an expense of the department',
      input: z.object({ id: z.string() }),
      scopes: ['expenses:approve'],
      // Nobody else needs to know that it exists.
      visible: ({ caller }) => (caller?.claims.limit ?? 0) > 0,
    },
    async ({ id }, io) => {
      const { principal, department } = await io.step('who', () => personOf(io.caller))
      const expense = await io.step('find', async () => (await ledger.find(id)) ?? null)
      if (expense?.department !== department) throw new ToolError(`${department} has no expense ${id}.`)
      // The limit of today, in every round. Use it only to refuse.
      const limit = io.caller?.claims.limit ?? 0
      if (expense.amount > limit)
        throw new ToolError(`You may approve ${limit} EUR, and this is ${expense.amount} EUR.`)
      if (!(await io.confirm('sure', `Approve ${expense.amount} EUR for ${expense.what}?`))) return 'Not approved.'
      await io.step('approve', () => ledger.approve(id, principal))
      return `Approved ${expense.amount} EUR for ${department}.`
    },
  )
}

function addReport(app: Rally, ledger: Ledger): void {
  app.tool(
    'report',
    {
      description: "Add up the expenses of the caller's department, in the background",
      input: z.object({ title: z.string() }),
      scopes: ['expenses:submit'],
      task: 'optional',
    },
    async ({ title }, io) => {
      // A task sees the caller of the request that made it, whichever process works on it.
      const { name, department } = await io.step('who', () => personOf(io.caller))
      const total = await io.step('total', async () => {
        const expenses = await ledger.list(department)
        return expenses.reduce((sum, { amount }) => sum + amount, 0)
      })
      return `${title}, for ${name} of ${department}: ${total} EUR`
    },
  )
}

function personOf(caller: Caller | undefined): { principal: string; name: string; department: string } {
  const { principal, claims } = caller ?? {}
  if (principal === undefined || claims?.name === undefined || claims.department === undefined) {
    throw new ToolError('Log in with an account of the company.')
  }
  return { principal, name: claims.name, department: claims.department }
}
