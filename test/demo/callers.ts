// A crowd of calls by two people on two instances of the expense server, all mixed: each result must name its own caller.
import type { JWK } from 'jose'
import { MemoryStore } from 'mcp-rally'
import type { CallToolResult, Client } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { expenseApp, memoryLedger } from '../../examples/expenses.ts'
import type { Person } from '../../examples/expenses-people.ts'
import { acceptTokens, newKey, PEOPLE, tokenOf } from '../../examples/expenses-people.ts'

export const PEOPLE_NAMES = Object.keys(PEOPLE) as Person[]

const REVISIONS = ['2026-07-28', '2025-11-25']
const AT_ONCE = 50

export interface CrowdReport {
  readonly calls: number
  readonly tasks: number
  readonly questions: number
  /** What is wrong. Empty if every handler saw its own caller. */
  readonly mixUps: readonly string[]
  /** EUR in the ledger, and EUR that were submitted, by department. */
  readonly booked: Readonly<Record<string, number>>
  readonly submitted: Readonly<Record<string, number>>
}

/** Makes so many calls, of every kind and in every revision. */
export async function runCrowd(count: number): Promise<CrowdReport> {
  const key = await newKey()
  const ledger = memoryLedger()
  const store = new MemoryStore()
  const keys = ['a secret of the crowd of callers, long enough']
  const logger = { debug() {}, info() {}, warn() {}, error() {} }
  const authenticate = acceptTokens(key)
  const instances = await Promise.all(
    [1, 2].map(() =>
      serve(expenseApp({ keys, store, logger, tasks: { pollMs: 20 } }, ledger), {
        // Clients and servers share one process here, so that requests wait for each other.
        maxLagMs: 60_000,
        port: 0,
        authenticate,
        handleSignals: false,
      }),
    ),
  )
  const mixUps: string[] = []
  let questions = 0
  const users = await Promise.all(
    PEOPLE_NAMES.flatMap((person) =>
      REVISIONS.flatMap((revision) =>
        instances.map(({ url }) =>
          newUser(person, revision, url, key, (message) => {
            questions += 1
            if (!message.startsWith(`${nameOf(person)}, should ${departmentOf(person)} pay `))
              mixUps.push(`${person} was asked: ${message}`)
          }),
        ),
      ),
    ),
  )
  const submitted: Record<string, number> = {}
  let tasks = 0
  const one = async (index: number): Promise<void> => {
    const user = users[index % users.length]
    if (user === undefined) return
    const { person } = user
    const { department } = PEOPLE[person].claims
    const kind = Math.floor(index / users.length) % 3
    if (kind === 0) {
      const amount = 1 + (index % 97)
      submitted[department] = (submitted[department] ?? 0) + amount
      const text = textOf(await user.client.callTool('submit_expense', { amount, what: `call ${index}` }))
      if (!text.startsWith(`${nameOf(person)} of ${department} submitted `)) mixUps.push(`${person} got: ${text}`)
    } else if (kind === 1) {
      tasks += 1
      const text = textOf(await user.client.callTool('report', { title: `Report ${index}` }))
      const expected = `Report ${index}, for ${nameOf(person)} of ${department}: `
      if (!text.startsWith(expected)) mixUps.push(`${person} got: ${text}`)
    } else {
      const tools = await user.client.listTools({ refresh: true })
      const seesApprove = tools.some(({ name }) => name === 'approve_expense')
      if (seesApprove !== (person === 'grace'))
        mixUps.push(`${person} sees ${tools.map(({ name }) => name).join(', ')}`)
    }
  }
  let next = 0
  const work = async (): Promise<void> => {
    while (next < count) await one(next++)
  }
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  } finally {
    for (const { client } of users) await client.close()
    for (const { close } of instances) await close()
  }
  const booked: Record<string, number> = {}
  for (const person of PEOPLE_NAMES) {
    const expenses = await ledger.list(departmentOf(person))
    booked[departmentOf(person)] = expenses.reduce((sum, { amount }) => sum + amount, 0)
    for (const { by, id } of expenses)
      if (!by.includes(`"${person}"`)) mixUps.push(`${id} of ${departmentOf(person)} is by ${by}`)
  }
  return { calls: count, tasks, questions, mixUps, booked, submitted }
}

interface User {
  readonly person: Person
  readonly client: Client
}

async function newUser(
  person: Person,
  revision: string,
  url: string,
  key: JWK,
  asked: (message: string) => void,
): Promise<User> {
  const client = await connect(url, {
    revision,
    headers: { authorization: `Bearer ${await tokenOf(person, key)}` },
    onElicit: ({ message }) => {
      asked(message)
      return { action: 'accept', content: { confirm: true } }
    },
  })
  return { person, client }
}

export function nameOf(person: Person): string {
  return PEOPLE[person].claims.name
}

export function departmentOf(person: Person): string {
  return PEOPLE[person].claims.department
}

export function textOf({ content }: Pick<CallToolResult, 'content'>): string {
  const [block] = content
  return block?.type === 'text' ? block.text : ''
}
