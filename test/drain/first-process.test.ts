// SIGTERM to the first process of a container: it ignores signals that it does not listen for, and nobody else passes them on.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { Child } from '../interop/child.ts'
import { call, headersOf, textOf } from '../wire/messages.ts'
import { deferredState } from './states.ts'

const SERVER = fileURLToPath(new URL('first-process.mjs', import.meta.url))

/** A container for the process alone, where the system lets us make one. Elsewhere it is tested as any other process. */
const UNSHARE = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child']
const isContained = spawnSync(UNSHARE[0] ?? '', [...UNSHARE.slice(1), 'true']).status === 0

interface Instance {
  readonly child: Child
  readonly url: string
  /** Its id outside of the container. */
  readonly pid: number
}

async function start(env: Record<string, string>): Promise<Instance> {
  const [command, ...args] = isContained ? [...UNSHARE, process.execPath, SERVER] : [process.execPath, SERVER]
  const child = new Child(command, args, { NODE_ENV: 'production', ...env })
  onTestFinished(async () => void (await child.kill()))
  const [, inside, url = ''] = await child.printed.match(/process (\d+) is listening on (\S+)/)
  const own = child.pid ?? 0
  if (!isContained) return { child, url, pid: own }
  expect(inside).toBe('1')
  return { child, url, pid: Number(readFileSync(`/proc/${own}/task/${own}/children`, 'utf8')) }
}

function post(url: string, message: ReturnType<typeof call>): Promise<Response> {
  return fetch(url, { method: 'POST', headers: headersOf(message), body: JSON.stringify(message) })
}

test(
  'it fails its probe, hands its call over at the next step, ends, and says so in JSON lines',
  { timeout: 60_000 },
  async () => {
    const [old, next] = [
      'the old secret of the drain tests that is long',
      'the new secret of the drain tests that is long',
    ]
    const first = await start({ RALLY_KEYS: old, INSTANCE: 'A', WAITS: 'yes' })
    const calling = post(first.url, call('work'))
    await first.child.printed.match(/first step/)
    process.kill(first.pid, 'SIGTERM')
    await first.child.complained.match(/A signal came/)
    expect((await fetch(new URL('/readyz', first.url))).status).toBe(503)
    expect((await fetch(new URL('/livez', first.url))).status).toBe(200)
    await first.child.complained.match(/The server is draining/)
    first.child.say('go on\n')
    const requestState = deferredState((await (await calling).json()) as object)
    expect(await first.child.ended).toEqual(
      isContained ? { code: 143, signal: null } : { code: null, signal: 'SIGTERM' },
    )
    // The keys are being rotated: the new instance seals with another one, and opens both.
    const second = await start({ RALLY_KEYS: `${next},${old}`, INSTANCE: 'B' })
    const response = await post(second.url, call('work', {}, { requestState }))
    expect(textOf((await response.json()) as object)).toBe('first on A, second on B')
    const lines = first.child.complained.text.trim().split('\n')
    const entries = lines.map((line) => JSON.parse(line) as { level: string; message: string })
    expect(entries.map(({ level, message }) => [level, message])).toEqual([
      ['info', 'The server is listening.'],
      ['info', 'A signal came: the server stops.'],
      ['info', expect.stringMatching(/^The server is draining/)],
      ['info', 'The server has drained.'],
    ])
  },
)
