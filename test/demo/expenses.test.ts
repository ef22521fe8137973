// The expense server, used by two people with different scopes and claims, on every carrier: each handler sees its own caller.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client as OfficialClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { JWK } from 'jose'
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Person } from '../../examples/expenses-people.ts'
import { newKey, PEOPLE, tokenOf } from '../../examples/expenses-people.ts'
import { Child } from '../interop/child.ts'
import { call } from '../wire/messages.ts'
import { departmentOf, nameOf, PEOPLE_NAMES, runCrowd, textOf } from './callers.ts'

const SERVER = fileURLToPath(new URL('../../dist-examples/expenses-server.js', import.meta.url))
const PROCESS = fileURLToPath(new URL('expenses-process.mjs', import.meta.url))
const PASSWORD = 'postgres://admin:hunter2@db/prod'

let key: JWK
/** Of one server for all tests that change nothing of each other. */
let url: string
beforeAll(async () => {
  key = await newKey()
  const child = new Child(process.execPath, [SERVER, '--port', '0'], { EXPENSES_KEY: JSON.stringify(key) })
  ;[, url = ''] = await child.printed.match(/listening on (\S+)/)
  return async () => void (await child.kill())
})

const asked: string[] = []
const agreeing: ClientOptions = {
  onElicit: ({ message }) => {
    asked.push(message)
    return { action: 'accept', content: { confirm: true } }
  },
}

async function as(person: Person, at: string, options: ClientOptions = {}): Promise<Client> {
  const headers = { authorization: `Bearer ${await tokenOf(person, key)}` }
  const client = await connect(at, { ...agreeing, headers, ...options })
  onTestFinished(() => client.close())
  return client
}

/** In production mode, with a ledger of the test's own. */
function runProcess(options: object): Child {
  const env = { NODE_ENV: 'production', OPTIONS: JSON.stringify({ key, ...options }) }
  return ending(new Child(process.execPath, [PROCESS], env))
}

async function startProcess(options: object): Promise<{ child: Child; at: string }> {
  const child = runProcess(options)
  const [, at = ''] = await child.printed.match(/listening on (\S+)/)
  return { child, at }
}

function ending(child: Child): Child {
  onTestFinished(async () => void (await child.kill()))
  return child
}

/** A fetch that keeps everything that the server sends. */
function listening(wire: string[]): NonNullable<ClientOptions['fetch']> {
  return async (address, init) => {
    const response = await fetch(address, init)
    wire.push(JSON.stringify([...response.headers]))
    if (response.body === null) return response
    const decoder = new TextDecoder()
    const kept = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        wire.push(decoder.decode(chunk, { stream: true }))
        controller.enqueue(chunk)
      },
    })
    return new Response(response.body.pipeThrough(kept), response)
  }
}

/** Resolves once the log has the password, and the reference that the caller read. */
async function logged(child: Child, text: string): Promise<void> {
  await child.complained.match(/hunter2/)
  await child.complained.match(new RegExp(text.slice(-11)))
}

describe.each(['2026-07-28', '2025-11-25', '2025-06-18'])('over HTTP with bearer tokens, in %s', (revision) => {
  test('each handler sees its own caller, and each caller what is theirs', async () => {
    for (const person of PEOPLE_NAMES) {
      const client = await as(person, url, { revision })
      asked.length = 0
      const submitted = textOf(await client.callTool('submit_expense', { amount: 40, what: 'books' }))
      expect(submitted).toMatch(new RegExp(`^${nameOf(person)} of ${departmentOf(person)} submitted \\S+$`))
      expect(asked).toEqual([`${nameOf(person)}, should ${departmentOf(person)} pay 40 EUR for books?`])
      const names = (await client.listTools()).map(({ name }) => name)
      expect(names.includes('approve_expense')).toBe(person === 'grace')
      const id = submitted.split(' ').at(-1) ?? ''
      const approving = client.callTool('approve_expense', { id })
      if (person === 'ada') await expect(approving).rejects.toMatchObject({ message: /Unknown tool: approve_expense/ })
      else expect(textOf(await approving)).toBe('Approved 40 EUR for sales.')
    }
  })

  test('a wrong argument still tells the model what to correct', async () => {
    const client = await as('ada', url, { revision })
    const { content, isError } = await client.callTool('submit_expense', { amount: -1, what: 'books' })
    expect(isError).toBe(true)
    expect(textOf({ content })).toMatch(/^Invalid arguments for submit_expense: amount:/)
  })
})

test('the official client of 2025 sees the same', async () => {
  for (const person of PEOPLE_NAMES) {
    const client = new OfficialClient({ name: 'official', version: '1' }, { capabilities: { elicitation: {} } })
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { confirm: true } }))
    const authorization = `Bearer ${await tokenOf(person, key)}`
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization } } })
    await client.connect(transport)
    const result = await client.callTool({ name: 'submit_expense', arguments: { amount: 1, what: 'tea' } })
    expect(textOf(result as Parameters<typeof textOf>[0])).toMatch(
      new RegExp(`^${nameOf(person)} of ${departmentOf(person)} `),
    )
    await client.close()
  }
})

test.each(PEOPLE_NAMES)('over stdio the process has one caller: %s', async (person) => {
  const client = await connect({ command: process.execPath, args: [SERVER, '--stdio', person] }, agreeing)
  onTestFinished(() => client.close())
  const text = textOf(await client.callTool('submit_expense', { amount: 5, what: 'tea' }))
  expect(text).toMatch(new RegExp(`^${nameOf(person)} of ${departmentOf(person)} submitted `))
})

test('a task that a second process takes over sees the caller who began it', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rally-expenses-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'tasks.db')
  const { child, at } = await startProcess({ file, waits: true })
  const begun = await Promise.all(
    PEOPLE_NAMES.map(async (person) => {
      const started = await (await as(person, at)).startTool('report', { title: 'May' })
      if (started.kind !== 'task') throw new Error('The report is not a task.')
      return { person, saved: started.task.toJSON() }
    }),
  )
  for (const person of PEOPLE_NAMES) await child.printed.match(new RegExp(`listing ${departmentOf(person)}`))
  await child.kill()
  const second = await startProcess({ file })
  for (const { person, saved } of begun) {
    const task = (await as(person, second.at)).task(saved)
    expect(textOf(await task.result())).toBe(`May, for ${nameOf(person)} of ${departmentOf(person)}: 0 EUR`)
    const other = PEOPLE_NAMES.find((each) => each !== person) ?? 'ada'
    await expect((await as(other, second.at)).task(saved).status()).rejects.toMatchObject({ code: 'TASK_GONE' })
  }
})

test(
  'of hundreds of mixed calls and tasks none sees another caller (`npm run drill -- callers` makes ten thousand)',
  { timeout: 60_000 },
  async () => {
    const { mixUps, booked, submitted, tasks, questions } = await runCrowd(240)
    expect(mixUps).toEqual([])
    expect(booked).toEqual(submitted)
    expect([tasks, questions]).toEqual([80, 80])
  },
)

describe('in production mode, the password in the error of a driver', () => {
  test('reaches the log and not the wire over HTTP, in every revision', { timeout: 60_000 }, async () => {
    const { child, at } = await startProcess({ fails: PASSWORD })
    const wire: string[] = []
    for (const revision of ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
      const client = await as('grace', at, { revision, fetch: listening(wire) })
      // Older revisions cannot ask.
      const tools = revision < '2025-06-18' ? ['report'] : ['submit_expense', 'report']
      for (const tool of tools) {
        const result = await client.callTool(tool, tool === 'report' ? { title: 'May' } : { amount: 1, what: 'tea' })
        expect(textOf(result)).toMatch(/^The tool failed\. Reference: [\w-]{11}$/)
        await logged(child, textOf(result))
      }
    }
    expect(wire.join('\n')).toContain('The tool failed.')
    expect(wire.join('\n')).not.toContain('hunter2')
  })

  test('reaches the log and not the wire in a task: neither result nor status message', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rally-expenses-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { child, at } = await startProcess({ fails: PASSWORD, file: join(folder, 'tasks.db') })
    const started = await (await as('ada', at)).startTool('report', { title: 'May' })
    if (started.kind !== 'task') throw new Error('The report is not a task.')
    const result = await started.task.result()
    const state = await started.task.status()
    expect(textOf(result)).toMatch(/^The tool failed\. Reference: /)
    expect(JSON.stringify([result, state])).not.toContain('hunter2')
    await logged(child, textOf(result))
  })

  test('reaches the log and not the wire over stdio', async () => {
    const child = runProcess({ caller: { principal: 'ada', ...PEOPLE.ada }, fails: PASSWORD })
    child.say(`${JSON.stringify(call('report', { title: 'May' }))}\n`)
    const [response] = await child.printed.match(/^.+\n/)
    expect(response).toMatch(/The tool failed\. Reference: [\w-]{11}"/)
    expect(response).not.toContain('hunter2')
    await child.complained.match(/hunter2/)
  })
})
