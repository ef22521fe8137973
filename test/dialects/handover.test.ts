// A call that the client carries goes on wherever its next round lands: after a drain, at the limit of one, after kill -9.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Rally } from 'mcp-rally'
import { MemoryOnceStore } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Process } from '../drain/process.ts'
import { RawSession } from '../legacy/raw.ts'
import { draftApp } from './app.mjs'
import type { Gate } from './gate.ts'
import { gate } from './gate.ts'
import type { Spelling } from './spellings.ts'
import { spellings } from './spellings.ts'
import type { Message } from './wires.ts'
import { wires } from './wires.ts'

const execute = promisify(execFile)
const RESUME = fileURLToPath(new URL('./resume.mjs', import.meta.url))

interface Said {
  url?: string
  planned?: string
}

async function start(): Promise<{ child: Process<Said>; url: string }> {
  const child = new Process<Said>(new URL('server.mjs', import.meta.url), {})
  onTestFinished(() => child.kill())
  const { url = '' } = await child.until((said) => said.url !== undefined)
  return { child, url }
}

describe.each(spellings)('Two processes with the same keys, in $revision', ({ revision, retry, asked, answer }) => {
  test('go on with each other: one asks and is killed, the other has the answer, in the same session', async () => {
    const [one, two] = await Promise.all([start(), start()])
    const session = await RawSession.open((init) => fetch(one.url, init), { revision })
    const params = { name: 'planned' }
    const { state, questions } = asked(await say(session, retry(params, undefined, undefined)))
    expect(Object.keys(questions ?? {})).toEqual(['sure'])
    await one.child.kill()
    const there = session.at((init) => fetch(two.url, init))
    const yes = { sure: answer({ action: 'accept', content: { confirm: true } }) }
    const { result } = await say(there, retry(params, yes, state))
    expect(result).toMatchObject({ content: [{ text: expect.stringMatching(/^\d+ follows the plan of \d+$/) }] })
    const [{ text = '' } = {}] = (result as { content: { text?: string }[] }).content
    const [follower, planner] = text.match(/\d+/g) ?? []
    expect(follower).not.toBe(planner)
    expect([...one.child.heard, ...two.child.heard].filter(({ planned }) => planned !== undefined)).toHaveLength(1)
  })

  test('go on with what a client has saved, in another process and a session of its own', async () => {
    const [one, two] = await Promise.all([start(), start()])
    const client = await connect(one.url, { revision, can: ['elicitation.form'] })
    let saved = ''
    for await (const round of client.rounds({ tool: 'planned' })) {
      if (round.kind !== 'asks') continue
      saved = JSON.stringify(round.pending)
      break
    }
    await one.child.kill()
    await client.close()
    const answers = { sure: { action: 'accept', content: { confirm: true } } }
    const env = { URL: two.url, PENDING: saved, ANSWERS: JSON.stringify(answers) }
    const { stdout } = await execute(process.execPath, [RESUME], { env, timeout: 20_000 })
    expect(JSON.parse(stdout)).toMatchObject({ content: [{ text: expect.stringMatching(/follows the plan of/) }] })
    expect(two.child.heard.filter(({ planned }) => planned !== undefined)).toEqual([])
  })
})

/** An app whose call does three steps, and notes them. The second one waits to be released, or is told to stop. */
function stepping(done: string[]): { app: Rally; begun: Gate; released: Gate } {
  const app = draftApp()
  const begun = gate()
  const released = gate()
  app.tool('steps', {}, async (_args, io) => {
    await io.step('one', () => void done.push('one'))
    await io.step('two', async ({ signal }) => {
      const stopped = new Promise<void>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('Stopped.')), { once: true })
      })
      begun.open()
      await Promise.race([released.opened, stopped])
      done.push('two')
    })
    await io.step('three', () => void done.push('three'))
    return done.join(' ')
  })
  return { app, begun, released }
}

function named(answer: Spelling['answer'], name: string): object {
  return { name: answer({ action: 'accept', content: { name } }) }
}

async function say(session: RawSession, message: object): Promise<Message> {
  return (await (await session.post(message)).json()) as Message
}

const cases = spellings.flatMap((spelling) => wires.map((wire) => ({ ...spelling, wire: wire.name, open: wire.open })))

describe.each(cases)('In $revision over $wire', ({ revision, open, retry, asked, answer }) => {
  const params = { name: 'steps' }

  test('a call is handed over at its next step while the server drains', async () => {
    const done: string[] = []
    const here = stepping(done)
    const talk = await open(here.app, { revision })
    const saying = talk.say(retry(params, undefined, undefined))
    await here.begun.opened
    here.app.drain()
    here.released.open()
    const { state, questions } = asked(await saying)
    expect(questions).toBeUndefined()
    await talk.close()
    const there = stepping(done)
    const other = await open(there.app, { revision })
    expect(await other.say(retry(params, undefined, state))).toMatchObject({
      result: { content: [{ text: 'one two three' }] },
    })
    await other.close()
  })

  test('at the limit of a drain a call is handed over with what it has recorded, and does not fail', async () => {
    const done: string[] = []
    const here = stepping(done)
    const talk = await open(here.app, { revision })
    const saying = talk.say(retry(params, undefined, undefined))
    await here.begun.opened
    here.app.interrupt()
    const { state } = asked(await saying)
    await talk.close()
    const there = stepping(done)
    there.released.open()
    const other = await open(there.app, { revision })
    expect(await other.say(retry(params, undefined, state))).toMatchObject({
      result: { content: [{ text: 'one two three' }] },
    })
    await other.close()
  })

  test('with a store for single use, a state is good for one round, and the same round again gets its response', async () => {
    const talk = await open(draftApp({ once: new MemoryOnceStore() }), { revision })
    const { state } = asked(await talk.say(retry({ name: 'WizardTool' }, undefined, undefined)))
    const first = asked(await talk.say(retry({ name: 'WizardTool' }, named(answer, 'Ada'), state)))
    const again = asked(await talk.say(retry({ name: 'WizardTool' }, named(answer, 'Ada'), state)))
    expect(again).toEqual(first)
    const other = await talk.say(retry({ name: 'WizardTool' }, named(answer, 'Eve'), state))
    expect(other['error']).toEqual({ code: -32602, message: 'Invalid or expired requestState' })
    await talk.close()
  })
})

test('A call that is suspended over HTTP under a key made at start-up is warned of, and on streams it is not', async () => {
  for (const { name, open } of wires) {
    const warnings: string[] = []
    const logger = { warn: (message: string) => void warnings.push(message), error: () => {} }
    const app = draftApp({ logger, keys: undefined as never })
    const talk = await open(app, { revision: '2026-06-XX' })
    await talk.say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'WizardTool' } })
    expect(warnings.filter((message) => message.includes('made at start-up'))).toHaveLength(name === 'HTTP' ? 1 : 0)
    await talk.close()
  }
})
