import { Console } from 'node:console'
import { EventEmitter, once } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { rally } from '../rally.ts'
import { send } from '../hosts/memory.ts'
import { ToolError } from '../flow/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { call, request } from '../../test/wire/messages.ts'
import type { ConsoleLoggerOptions } from './console-logger.ts'
import { consoleLogger } from './console-logger.ts'

const now = (): Date => new Date('2026-07-28T12:04:31.000Z')

function collected(options: Partial<ConsoleLoggerOptions> = {}): { logger: Logger; lines: string[] } {
  const lines: string[] = []
  const write = (line: string): void => void lines.push(line)
  return { logger: consoleLogger({ level: 'debug', isJson: true, write, now, ...options }), lines }
}

function driverError(): Error {
  return Object.assign(new Error('ECONNREFUSED hunter2', { cause: new Error('no route') }), { code: 'ECONNREFUSED' })
}

describe('JSON lines', () => {
  test('have time, level, message and fields, and an error with its stack and cause', () => {
    const { logger, lines } = collected()
    logger.error('It failed.', { tool: 'pay', big: 1n, error: driverError() })
    const entry = JSON.parse(lines[0] ?? '') as Record<string, unknown>
    expect(entry).toEqual({
      time: '2026-07-28T12:04:31.000Z',
      level: 'error',
      message: 'It failed.',
      tool: 'pay',
      big: '1',
      error: {
        name: 'Error',
        message: 'ECONNREFUSED hunter2',
        code: 'ECONNREFUSED',
        stack: expect.stringContaining('console-logger.test.ts'),
        cause: expect.objectContaining({ message: 'no route' }),
      },
    })
  })

  test('are one line each, whatever the fields hold', () => {
    const { logger, lines } = collected()
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    logger.warn('A\nB', { cycle })
    logger.warn('C', { level: 'error', message: 'spoofed', time: 'never', text: 'a\nb' })
    expect(lines.map((line) => line.includes('\n'))).toEqual([false, false])
    expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual(['A\nB', 'C'])
    expect(JSON.parse(lines[1] ?? '')).toMatchObject({ level: 'warn', time: '2026-07-28T12:04:31.000Z' })
  })
})

describe('lines for people', () => {
  test('have the fields behind the message, and the stack below', () => {
    const { logger, lines } = collected({ isJson: false })
    logger.error('Tool "pay": failed.', { tool: 'pay', round: 1, task: undefined, error: driverError() })
    const [first, ...rest] = (lines[0] ?? '').split('\n')
    expect(first).toBe(`12:04:31 ERROR Tool "pay": failed. tool='pay' round=1`)
    expect(rest[0]).toBe('    Error: ECONNREFUSED hunter2')
  })

  test('cannot be made to look like another entry, or to control a terminal', () => {
    const { logger, lines } = collected({ isJson: false })
    logger.warn('Resource a:\n12:00:00 ERROR spoofed \u001B[31m', { error: new Error('\u001B]0;owned\u0007') })
    expect(lines[0]?.split('\n')[0]).toBe('12:04:31 WARN  Resource a: 12:00:00 ERROR spoofed  [31m')
    // oxlint-disable-next-line no-control-regex
    expect(lines[0]).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/)
  })
})

test.each([
  ['debug', 4],
  ['info', 3],
  ['warn', 2],
  ['error', 1],
] as const)('the level %s lets %d levels through', (level, count) => {
  const { logger, lines } = collected({ level })
  logger.debug?.('d')
  logger.info?.('i')
  logger.warn('w')
  logger.error('e')
  expect(lines).toHaveLength(count)
})

describe('a logger of pino', () => {
  test('fits as it is: fields first, and the error with its stack', async () => {
    const { logger, next } = pinoLogger()
    const app = rally({ name: 'shop', version: '1', showErrors: false, logger })
    app.tool('pay', {}, (_args, io) => io.step('charge', () => Promise.reject(driverError())))
    app.tool('sold_out', {}, () => Promise.reject(new ToolError('Sold out.')))
    const line = next()
    await send(app, call('pay'), { caller: { principal: 'ada' } })
    expect(await line).toMatchObject({
      level: 50,
      msg: 'Tool "pay": "charge" failed.',
      tool: 'pay',
      key: 'charge',
      flow: expect.stringMatching(/^[\w-]{11}$/),
      round: 0,
      principal: 'ada',
      err: expect.objectContaining({ message: expect.stringContaining('hunter2'), stack: expect.any(String) }),
    })
    const answer = next()
    await send(app, call('sold_out'))
    expect(await answer).toMatchObject({ level: 20, tool: 'sold_out' })
  })

  test('takes a % in a message as it is', async () => {
    const { logger, next } = pinoLogger()
    const line = next()
    await readPercent(logger)
    const err = expect.objectContaining({ message: expect.stringContaining('hunter2') })
    expect(await line).toMatchObject({ msg: `Resource ${PERCENT}: failed.`, target: PERCENT, err })
  })
})

describe('console as the logger', () => {
  test.each(['the global one', 'another one'])('%s keeps the error when a message has a %', async (which) => {
    const { given, err } = consoleOf()
    if (which === 'the global one') vi.stubGlobal('console', given)
    onTestFinished(() => void vi.unstubAllGlobals())
    await readPercent(given)
    const text = String(err.read())
    expect(text).toContain(`Resource ${PERCENT}: failed. {`)
    expect(text).toContain('Error: ECONNREFUSED hunter2')
    expect(text).toContain('[cause]: Error: no route')
  })

  test('writes all levels to the error stream, because the other one may carry the protocol', async () => {
    const { given, out, err } = consoleOf()
    vi.stubGlobal('console', given)
    onTestFinished(() => void vi.unstubAllGlobals())
    const { logger } = rally({ name: 'a', version: '1', logger: console })
    logger.debug?.('one')
    logger.info?.('two', { n: 2 })
    logger.warn('three')
    logger.error('four')
    expect(out.read()).toBeNull()
    expect(err.read()).toBe('one\ntwo { n: 2 }\nthree\nfour\n')
  })
})

const PERCENT = 'file:///caf%c3%a9/%da%81'

/** Logs an error with a message that callers have chosen. */
async function readPercent(logger: Logger): Promise<void> {
  const app = rally({ name: 'shop', version: '1', logger })
  app.resourceTemplate('file:///{+path}', { name: 'file' }, () => Promise.reject(driverError()))
  await send(app, request('resources/read', { uri: PERCENT }))
}

/** Node's own, in place of the one of the test runner. */
function consoleOf(): { given: Console; out: PassThrough; err: PassThrough } {
  const [out, err] = [new PassThrough({ encoding: 'utf8' }), new PassThrough({ encoding: 'utf8' })]
  return { given: new Console(out, err), out, err }
}

/** A real one, and its next entry. */
function pinoLogger(): { logger: Logger; next: () => Promise<unknown> } {
  const written = new EventEmitter()
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.emit('line', JSON.parse(String(chunk)))
      done()
    },
  })
  const next = async (): Promise<unknown> => (await once(written, 'line'))[0] as unknown
  return { logger: pino({ level: 'debug' }, destination), next }
}

test.each([
  [{ logLevel: 'loud' }, /`logLevel` must be one of debug, info, warn, error, got "loud"/],
  [{ logger: {} }, /`logger` must have the functions warn and error, got an object/],
  [{ logger: null }, /`logger` must have the functions warn and error, got null/],
])('%j is refused', (options, message) => {
  expect(() => rally({ name: 'a', version: '1', ...(options as object) })).toThrow(message)
})

test('a logger that throws fails no request', async () => {
  const failed = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => failed.mockRestore())
  const app = rally({ name: 'shop', version: '1', logger: { warn: broken, error: broken } })
  app.tool('pay', {}, (_args, io) => io.step('charge', () => Promise.reject(driverError())))
  expect(await send(app, call('pay'))).toMatchObject({ result: { isError: true } })
  expect(failed.mock.calls[0]).toMatchObject(['%s', expect.stringMatching(/^The logger failed\. The entry: /), {}])
})

function broken(): never {
  throw new Error('The disk is full.')
}
