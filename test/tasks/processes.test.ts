// Tasks in a SQLite file, and real processes that work on them and are told to go, or are killed.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Process } from '../drain/process.ts'
import type { WireRequest } from '../wire/messages.ts'
import { accept, headersOf, request, resultOf } from '../wire/messages.ts'
import type { Task } from './caller.ts'
import { task, WITH_TASKS } from './caller.ts'
import { checkMessage } from './spec.ts'

interface Said {
  url?: string
  running?: string
  idempotencyKey?: string
  aborted?: string
}

/** Longer than any test may take: what ends before has not waited for it. */
const NEVER_MS = 600_000
const BY_SIGNAL = { code: null, signal: 'SIGTERM' }

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rally-tasks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'tasks.db')
}

/** A server process on this file. */
async function start(file: string, options: object = {}): Promise<{ child: Process<Said>; url: string }> {
  const defaults = { file, leaseMs: NEVER_MS, drainMs: NEVER_MS }
  const child = new Process<Said>(new URL('server.mjs', import.meta.url), { ...defaults, ...options })
  onTestFinished(() => child.kill())
  const { url = '' } = await child.until((said) => said.url !== undefined)
  return { child, url }
}

async function post(url: string, message: WireRequest): Promise<Record<string, unknown>> {
  const { taskId } = message.params
  const headers = { ...headersOf(message), ...(typeof taskId === 'string' && { 'Mcp-Name': taskId }) }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(message) })
  const body = (await response.json()) as object
  checkMessage(body, message.method)
  return resultOf(body)
}

async function begin(url: string): Promise<string> {
  const { taskId } = await post(url, request('tools/call', { name: 'work', arguments: {} }, WITH_TASKS))
  return String(taskId)
}

/** Polls, as a client does, until the task stands as is wanted. */
async function until(url: string, id: string, status: Task['status']): Promise<Task> {
  for (;;) {
    const seen = (await post(url, task('tasks/get', id))) as unknown as Task
    if (seen.status === status) return seen
    await new Promise((resolve) => void setTimeout(resolve, 20))
  }
}

async function runs(child: Process<Said>, ...steps: string[]): Promise<void> {
  for (const step of steps) {
    await child.until(({ running }) => running === step)
    child.tell({ step })
  }
}

async function answered(url: string, id: string): Promise<string | undefined> {
  await until(url, id, 'input_required')
  await post(url, task('tasks/update', id, { inputResponses: { sure: accept({ confirm: true }) } }))
  return (await until(url, id, 'completed')).result?.content[0]?.text
}

describe('a process that is told to go', () => {
  test('hands its task over at the next step, to whoever is there, and ends by the signal', async () => {
    const file = newFile()
    const { child, url } = await start(file)
    const id = await begin(url)
    await runs(child, 'one')
    await child.until(({ running }) => running === 'two')
    child.signal('SIGTERM')
    const other = await start(file)
    child.tell({ step: 'two' })
    expect(await child.ended).toEqual(BY_SIGNAL)
    await runs(other.child, 'three')
    expect(await answered(other.url, id)).toBe('Done, true.')
    expect(child.heard.map(({ running }) => running).filter(Boolean)).toEqual(['one', 'two'])
    expect(other.child.heard.map(({ running }) => running).filter(Boolean)).toEqual(['three'])
  })

  test('tells its step to stop at the drain limit, and the step runs again elsewhere under the same key', async () => {
    const file = newFile()
    const { child, url } = await start(file, { drainMs: 100 })
    const id = await begin(url)
    await runs(child, 'one')
    const { idempotencyKey } = await child.until(({ running }) => running === 'two')
    child.signal('SIGTERM')
    await child.until(({ aborted }) => aborted === 'two')
    expect(await child.ended).toEqual(BY_SIGNAL)
    const other = await start(file)
    expect((await other.child.until(({ running }) => running === 'two')).idempotencyKey).toBe(idempotencyKey)
    await runs(other.child, 'two', 'three')
    expect(await answered(other.url, id)).toBe('Done, true.')
  })
})

describe('a process that is killed', () => {
  test('loses its task to another one when its lease has run out, and nothing recorded is done again', async () => {
    const file = newFile()
    const { child, url } = await start(file, { leaseMs: 300 })
    const id = await begin(url)
    await runs(child, 'one')
    await child.until(({ running }) => running === 'two')
    await child.kill()
    const other = await start(file, { leaseMs: 300 })
    await runs(other.child, 'two', 'three')
    await until(other.url, id, 'input_required')
    await other.child.kill()
    // Waiting for its answer it is nobody's, and the next process wakes it at once.
    const third = await start(file)
    expect(await answered(third.url, id)).toBe('Done, true.')
    expect(third.child.heard.some(({ running }) => running !== undefined)).toBe(false)
  })
})
