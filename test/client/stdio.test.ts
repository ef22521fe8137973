// A server that is a child process: its life, its death, and what it says in between.
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { SERVER, textOf } from './wires.ts'

const clients = new Set<Client>()
afterAll(async () => {
  await Promise.all(Array.from(clients, (client) => client.close()))
})

async function started(options: ClientOptions = {}, command: object = {}): Promise<Client> {
  const client = await connect({ command: process.execPath, args: [SERVER, '--stdio'], ...command }, options)
  clients.add(client)
  return client
}

const pidOf = async (client: Client): Promise<number> => Number(textOf(await client.callTool('pid')))

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe.concurrent('a process that dies', () => {
  test('loses the call under way, with its last words, and is there again for the next', async () => {
    const client = await started()
    const before = await pidOf(client)
    await expect(client.callTool('die')).rejects.toMatchObject({
      code: 'LOST',
      message: expect.stringMatching(
        /exited with code 3\. Its stderr ends with:\nSomething is badly wrong\.\n.*may or may not have taken effect/s,
      ),
    })
    const after = await pidOf(client)
    expect(after).not.toBe(before)
    expect(isAlive(before)).toBe(false)
  })

  test('by a signal is told of', async () => {
    const client = await started()
    const pid = await pidOf(client)
    const call = client.callTool('wait')
    call.catch(() => {})
    await pidOf(client)
    process.kill(pid, 'SIGKILL')
    await expect(call).rejects.toMatchObject({ code: 'LOST', message: expect.stringContaining('was ended by SIGKILL') })
  })

  test('does not end a call that may be repeated', async () => {
    const client = await started({ onElicit: () => ({ action: 'accept', content: { sure: true } }) })
    const pid = await pidOf(client)
    await client.listTools()
    process.kill(pid, 'SIGKILL')
    expect(await pidOf(client)).not.toBe(pid)
  })

  test('is gone on with where it was, by the next', async () => {
    const client = await started({ can: ['elicitation.form'] })
    const rounds = client.rounds({ tool: 'order', arguments: { what: 'tea' } })
    const answers = [
      { size: { action: 'accept', content: { size: 'small' } } },
      { sure: { action: 'accept', content: { sure: true } } },
    ] as const
    let asked = 0
    for await (const round of rounds) {
      if (round.kind === 'done') expect(textOf(round.result)).toBe('A small tea with milk.')
      if (round.kind !== 'asks') continue
      round.answer(answers[asked] ?? {})
      asked += 1
      process.kill(await pidOf(client), 'SIGKILL')
    }
    expect(asked).toBe(2)
  })

  test.each([
    ['that is not there', { command: '/nowhere/at/all' }, 'COMMAND', /Cannot start the server: .*ENOENT/],
    ['in a folder that is not there', { cwd: '/nowhere/at/all' }, 'COMMAND', /Cannot start the server/],
    ['that is no command', { args: ['a\0b'] }, 'COMMAND', /Cannot start the server: .*null bytes/],
    [
      'that ends at once',
      { args: ['--eval', 'console.error("I will not."); process.exit(1)'] },
      'COMMAND',
      /^The server stopped before it answered: .* exited with code 1\. Its stderr ends with:\nI will not\.$/,
    ],
  ])('before it has said anything fails to connect: one %s', async (_what, command, code, message) => {
    await expect(started({}, command)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })
})

describe.concurrent('a process', () => {
  test('is cancelled by name, and other calls go on', async () => {
    const client = await started()
    const controller = new AbortController()
    const call = client.callTool('wait', {}, { signal: controller.signal })
    call.catch(() => {})
    const pid = await pidOf(client)
    controller.abort()
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' })
    expect(await pidOf(client)).toBe(pid)
  })

  test('tells of changes, beside its calls', async () => {
    const client = await started()
    const seen: string[] = []
    for await (const { type } of client.subscribe({ tools: true })) {
      seen.push(type)
      if (seen.length === 2) break
      await client.callTool('change')
    }
    expect(seen).toEqual(['acknowledged', 'tools'])
    expect(await pidOf(client)).toBeGreaterThan(0)
  })

  test('that says what is no message is heard over it', async () => {
    const warn = vi.fn<(message: string) => void>()
    const client = await started({ logger: { warn, error: warn } })
    expect(textOf(await client.callTool('chatter'))).toBe('Said too much.')
    expect(warn.mock.calls.map(([message]) => message)).toEqual([
      'The server wrote a line to stdout that is not a JSON-RPC message.',
      'The server sent a message that this client does not handle.',
      'The server wrote a line to stdout that is not a JSON-RPC message.',
    ])
  })

  test('that says too much at once fails the call, and no other after it', async () => {
    const client = await started({ maxResponseBytes: 20_000 })
    await expect(client.callTool('shout')).rejects.toMatchObject({ code: 'RESPONSE_TOO_LARGE' })
    expect(await pidOf(client)).toBeGreaterThan(0)
  })

  test('gets no more of our environment than it needs, and what it was given', async () => {
    const secret = 'RALLY_TEST_SECRET'
    process.env[secret] = 'hush'
    const client = await started({}, { env: { GIVEN: 'yes' } })
    const names = String(textOf(await client.callTool('env'))).split(' ')
    delete process.env[secret]
    expect(names).toContain('PATH')
    expect(names).toContain('GIVEN')
    expect(names).not.toContain(secret)
  })

  test('ends when its client is closed', async () => {
    const client = await started()
    const pid = await pidOf(client)
    await client.close()
    expect(isAlive(pid)).toBe(false)
    await expect(client.callTool('pid')).rejects.toMatchObject({ code: 'CLOSED' })
  })

  test('that does not want to end is made to', async () => {
    const client = await started({}, { args: [SERVER, '--stdio', '--deaf'] })
    const pid = await pidOf(client)
    await client.close()
    expect(isAlive(pid)).toBe(false)
  })
})

test('an error that answers a cancelled request is not logged: the caller knows already', async () => {
  const script = `
    let open
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line)
      const answer = (to, rest) => console.log(JSON.stringify({ jsonrpc: '2.0', id: to, ...rest }))
      if (method === 'initialize')
        answer(id, { result: { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: 'raw', version: '1' } } })
      if (method === 'tools/call') open = id
      if (method === 'notifications/cancelled') answer(open, { error: { code: -32000, message: 'Cancelled.' } })
      if (method === 'ping') answer(id, { result: {} })
      if (method === 'tools/list') answer(id, { result: { tools: [] } })
    })`
  const warn = vi.fn<(message: string) => void>()
  const logger = { warn, error: warn }
  const client = await started({ revision: '2025-11-25', logger }, { args: ['-e', script] })
  const controller = new AbortController()
  const call = client.callTool('any', {}, { signal: controller.signal })
  setImmediate(() => controller.abort())
  await expect(call).rejects.toThrow(/abort|cancel/i)
  await client.listTools()
  expect(warn).not.toHaveBeenCalled()
})
