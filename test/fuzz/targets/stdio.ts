// Lines to the host for standard streams, in whichever pieces they come.
import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import type { Rally } from 'mcp-rally'
import { stdio as serveStdio } from 'mcp-rally/node'
import { fuzzApp } from '../wire/app.ts'
import { isObject, mutateCharacters, mutateText, oddString, parsed } from '../harness/json.ts'
import { fateOf, OLDER_REVISIONS, Slots } from '../wire/messages.ts'
import { modernProgram, olderProgram } from '../wire/programs.ts'
import type { Watch } from '../harness/target.ts'
import { clipped, target } from '../harness/target.ts'
import { Asked, checkSent } from '../wire/check.ts'
import { mutateList } from './dispatch.ts'

/** `piece` is how many bytes are written at a time; 0 writes a line at once. */
type Input = { lines: string[]; end: string; piece: number }

export const stdio = target<Input>({
  name: 'stdio',
  generate(random) {
    const older = (): string[] => olderProgram(random, random.pick(OLDER_REVISIONS), random.chance(0.3))
    const lines = random.chance(0.6) ? modernProgram(random) : older()
    return { lines, end: random.pick(['\n', '\n', '\r\n', '\n\n', '']), piece: random.pick([0, 0, 1, 5, 100]) }
  },
  mutate(random, input, other) {
    const roll = random.int(10)
    if (roll === 0) return { ...input, lines: mutateList(random, input.lines, other.lines) }
    if (roll === 1)
      return {
        ...input,
        piece: random.pick([0, 1, 3, 1_000]),
        end: random.pick(['\n', '\r\n', '\r', '\0', '\ufeff\n']),
      }
    if (roll === 2)
      return { ...input, lines: [...input.lines, oddString(random), '['.repeat(random.pick([10, 5_000, 200_000]))] }
    const at = random.int(input.lines.length)
    const line = input.lines[at] ?? ''
    const change = roll === 3 ? mutateCharacters : mutateText
    return { ...input, lines: input.lines.with(at, change(random, line, random.pick(other.lines))) }
  },
  async open(watch) {
    const app = fuzzApp(watch)
    return {
      run: (input) => overStdio(watch, app, input),
      async close() {
        app.interrupt()
        await app.idle()
      },
    }
  },
})

/** One client from its first line to its end. `revision` is that of its session, where that is known. */
export async function overStdio(
  watch: Watch,
  app: Rally,
  { lines, end, piece }: Input,
  revision?: string,
): Promise<string[]> {
  const input = new PassThrough()
  const output = new PassThrough()
  const asked = new Asked()
  const slots = new Slots()
  const fates: string[] = []
  /** How many responses each id of a request of 2026-07-28 has still to get. */
  const owed = new Map<unknown, number>()
  const owe = (id: unknown, more: number): void => void owed.set(id, (owed.get(id) ?? 0) + more)
  let rest = ''
  output.setEncoding('utf8').on('data', (text: string) => {
    const whole = (rest + text).split('\n')
    rest = whole.pop() ?? ''
    for (const line of whole) {
      // Both eras may speak on one pair of streams.
      const isOlder = asked.sent.includes('initialize')
      const message = checkSent(watch, line, asked, isOlder ? (revision ?? 'any') : undefined)
      slots.note(message)
      fates.push(fateOf(message))
      if (isObject(message) && message['method'] === undefined) owe(message['id'], -1)
    }
  })
  const over = serveStdio(app, { input, output, maxLineBytes: 1_000_000 })
  for (const each of lines) {
    const text = slots.fill(each)
    asked.note(text)
    for (const id of modernId(text)) owe(id, 1)
    const bytes = Buffer.from(text + end)
    const size = piece === 0 ? bytes.length : Math.max(piece, Math.ceil(bytes.length / 500))
    for (let at = 0; at < bytes.length; at += size) input.write(bytes.subarray(at, at + size))
    await quiet(() => fates.length)
  }
  const isExact = end.endsWith('\n') && !lines.some((line) => /cancelled|\n/.test(line))
  if (isExact && [...owed.values()].some((count) => count > 0)) {
    watch.report('invalid', 'A request got no response', clipped(JSON.stringify([...owed])))
  }
  input.end()
  await over
  await quiet(() => fates.length)
  if (rest !== '') watch.report('invalid', 'The last line is not complete', clipped(rest))
  return fates
}

/** The id of a request that is answered at once, if the text is one. */
function modernId(text: string): unknown[] {
  const message = parsed(text)
  const { jsonrpc, id, method, params } = isObject(message) ? message : {}
  const meta = isObject(params) ? params['_meta'] : undefined
  const isModern = isObject(meta) && 'io.modelcontextprotocol/protocolVersion' in meta
  // An id that is too long is not repeated.
  const isId = typeof id === 'string' ? id.length <= 100 : Number.isSafeInteger(id)
  const isRequest = jsonrpc === '2.0' && isId && typeof method === 'string'
  return isModern && isRequest && method !== 'subscriptions/listen' ? [id] : []
}

/** Waits until nothing more comes for a few turns of the event loop. */
export async function quiet(count: () => number): Promise<void> {
  for (let turns = 0, before = -1; turns < 100 && before !== count(); turns += 1) {
    before = count()
    for (let times = 0; times < 4; times += 1) await turn()
  }
}
