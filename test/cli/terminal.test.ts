import { existsSync } from 'node:fs'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startDemo } from '../demo/demo-process.ts'
import { HOSTILE, serveDemo, startServer } from './app.ts'
import { folder } from './cli.ts'
import { KEYS, Terminal } from './terminal.ts'

const { enter, down, escape, space, ctrlC, ctrlD } = KEYS

test('a work item is resolved as a duplicate, in three rounds, by the answers that are chosen and typed', async () => {
  const { url } = await startDemo()
  const terminal = new Terminal(['call', url, 'update_work_item', 'id=4522', 'state=Resolved'])
  await terminal.shows(/How was work item 4522 resolved\?/)
  await terminal.answer('resolution', down + down + enter)
  await terminal.shows(/Which work item is 4522 a duplicate of\?/)
  await terminal.answer('duplicateOf - Number of the original work item', `4301${enter}`)
  expect(await terminal.ended).toBe(0)
  expect(terminal.text).toMatch(/Round 1: rally-demo asks 1 question\.[^]*Round 2: [^]*Round 3: rally-demo is done\./)
  const { text } = terminal
  expect(JSON.parse(text.slice(text.indexOf('{')))).toEqual({
    id: 4522,
    state: 'Resolved',
    resolution: 'Duplicate',
    duplicateOf: 4301,
  })
})

describe('a form', () => {
  /** Each with what is typed first and refused, and how. */
  const TYPED = [
    { label: 'Your name', wrong: 'A', says: 'must have at least 2 characters', right: 'da' },
    { label: 'mail', wrong: 'ada', says: 'must be an email address', right: '@example.com' },
    { label: 'page', wrong: 'x', says: 'must be a full URI', right: ':y' },
    { label: 'day', wrong: '2026-07-2', says: 'must be a date', right: '8' },
    { label: 'moment', wrong: '2026-07-28T12:00:00', says: 'must be a date and time', right: 'Z' },
    { label: 'weight', wrong: '0.', says: 'must be at least 0.5', right: '75' },
    { label: 'count', wrong: '1.5', says: 'must be a whole number', right: '\u007F\u007F' },
  ]

  test('has a field of every kind, and refuses what does not fit where it is typed', async () => {
    const { url } = await startServer()
    const terminal = new Terminal(['call', url, 'form'])
    for (const { label, wrong, says, right } of TYPED) {
      await terminal.answer(label, wrong + enter)
      await terminal.shows(new RegExp(says))
      terminal.type(right + enter)
    }
    await terminal.answer('sure - Are you sure\\?', `y`)
    await terminal.answer('size', down + enter)
    await terminal.answer('colour', down + enter)
    await terminal.answer('days', space + enter)
    await terminal.shows(/days must have at least 2 chosen/)
    await terminal.answer('days[^]*\u25FC Mon', down + space + enter)
    await terminal.answer('rooms', down + space + enter)
    await terminal.answer('Send this', enter)
    expect(await terminal.ended).toBe(0)
    expect(
      JSON.parse(
        terminal.text
          .split('\n')
          .slice(-3)
          .join('')
          .replace(/^[^{]*/, ''),
      ),
    ).toEqual({
      name: 'Ada',
      mail: 'ada@example.com',
      page: 'x:y',
      day: '2026-07-28',
      moment: '2026-07-28T12:00:00Z',
      weight: 0.75,
      count: 1,
      sure: true,
      size: 'large',
      colour: '#0f0',
      days: ['Mon', 'Tue'],
      rooms: ['r2'],
    })
  })

  test('is filled in with Enter alone where nothing is needed: what has a default gets it, the rest is left out', async () => {
    const { url } = await startServer()
    const terminal = new Terminal(['call', url, 'optional'])
    const labels = ['note', 'age', 'again', 'kind', 'tags', 'city', 'number', 'loud', 'month', 'several']
    for (const label of labels) await terminal.answer(`${label} \\(optional\\)`, enter)
    await terminal.answer('Send this', enter)
    expect(await terminal.ended).toBe(0)
    expect(terminal.text).toContain('{"city":"Ghent","number":7,"loud":true,"month":"June","several":["q","r"]}')
  })

  test('of several fields can be changed before it is sent, from what was answered', async () => {
    const { url } = await serveDemo()
    const terminal = new Terminal(['call', url, 'trip'])
    await terminal.answer('city', `Ghent${enter}`)
    await terminal.answer('month', enter)
    await terminal.answer('transport', down + enter)
    await terminal.answer('luggage', enter)
    await terminal.answer('Send this', down + enter)
    await terminal.answer('transport[^]*\u25CF bicycle', enter)
    await terminal.answer('luggage', 'y')
    await terminal.answer('Send this', enter)
    expect(await terminal.ended).toBe(0)
    expect(terminal.text).toContain('To Ghent in May by bicycle, with luggage')
  })

  test('without a field is agreed to or declined', async () => {
    const { url } = await startServer()
    const terminal = new Terminal(['call', url, 'nothing'])
    await terminal.answer('Send this', enter)
    expect(await terminal.ended).toBe(0)
    expect(terminal.text.split('\n').at(-1)).toBe('accept')
  })
})

describe('a question is left', () => {
  test.each([
    { key: 'Esc', keys: escape },
    { key: 'Ctrl-D', keys: ctrlD },
  ])('by $key, gone back to, and declined: then the exit code is 4', async ({ keys }) => {
    const { url } = await serveDemo()
    const terminal = new Terminal(['call', url, 'deploy', 'env=prod'])
    await terminal.answer('confirm', keys)
    await terminal.answer('Leave the question', enter)
    await terminal.shows(/Leave the question\?\n.*Go back to it[^]*\u25C6 {2}confirm/)
    terminal.type(escape)
    await terminal.shows(/Go back to it[^]*\u25C6 {2}Leave the question/)
    terminal.type(down + enter)
    expect(await terminal.ended).toBe(4)
    expect(terminal.text).toContain('The user declined the question "confirm".')
  })

  test('by Ctrl-C: the call is stopped and the exit code is 130', async () => {
    const { url } = await serveDemo()
    const terminal = new Terminal(['call', url, 'deploy', 'env=prod'])
    await terminal.answer('confirm', ctrlC)
    expect(await terminal.ended).toBe(130)
    expect(terminal.text).toMatch(/\nStopped\.$/)
  })
})

test('Ctrl-C while the server works cancels the call there, and the exit code is 130', async () => {
  const { url, slow } = await startServer()
  const terminal = new Terminal(['call', url, 'slow'])
  await slow.begun
  terminal.type(ctrlC)
  await slow.stopped
  expect(await terminal.ended).toBe(130)
})

test('progress is a bar on one line, which is gone when the result is there', async () => {
  const { url } = await serveDemo()
  const terminal = new Terminal(['call', url, 'long_sum', 'n=60'])
  expect(await terminal.ended).toBe(0)
  expect(terminal.raw).toMatch(/\[#{15}\.{15}\] 50% 30\/60/)
  expect(terminal.text).toBe('1830')
})

describe('a page to visit', () => {
  test('is opened, as it was shown, once the user agrees, and not before', async () => {
    const { url } = await startServer()
    const { env, opened } = await fakeBrowser()
    const terminal = new Terminal(['call', url, 'visit', 'url=https://EXAMPLE.com:8443/a?b=\u00E9'], env)
    await terminal.shows(
      /tested \(http:\/\/127\.0\.0\.1:\d+\/mcp\) asks you to visit\n.*https:\/\/example\.com:8443\/a\?b=%C3%A9\n.*on the host example\.com:8443\n/,
    )
    await terminal.shows(/\u25C6 {2}Visit it\?/)
    expect(await opened()).toBe('')
    terminal.type(enter)
    expect(await terminal.ended).toBe(0)
    expect(terminal.text.split('\n').at(-1)).toBe('Signed in.')
    await expect.poll(opened).toBe('https://example.com:8443/a?b=%C3%A9\n')
  })

  test('is asked for again until the user has been there, and is not opened again unless they say so', async () => {
    const { url, errand } = await startServer()
    const { env, opened } = await fakeBrowser()
    const terminal = new Terminal(['call', url, 'errand'], env)
    await terminal.answer('Visit it\\?\n.*Open it', enter)
    await terminal.shows(/\u25C6 {2}Visit it\?\n.*I have visited it: continue/)
    errand.run()
    terminal.type(enter)
    expect(await terminal.ended).toBe(0)
    expect(terminal.text.split('\n').at(-1)).toBe('Been there.')
    expect(await opened()).toBe('https://example.com/errand\n')
  })

  test('whose host only looks like another is marked, and declining comes first', async () => {
    const { url } = await startServer()
    const { env, opened } = await fakeBrowser()
    const terminal = new Terminal(['call', url, 'visit', 'url=https://\u0430pple.com/'], env)
    await terminal.shows(/on the host xn--pple-43d\.com \(shown by browsers as \u0430pple\.com\)/)
    await terminal.shows(/It may only look like a host that you know\./)
    await terminal.answer('Visit it', enter)
    expect(await terminal.ended).toBe(4)
    expect(await opened()).toBe('')
  })

  test('is not opened with --no-open', async () => {
    const { url } = await startServer()
    const { env, opened } = await fakeBrowser()
    const terminal = new Terminal(['call', url, 'visit', 'url=https://example.com/', '--no-open'], env)
    await terminal.shows(/https:\/\/example\.com\//)
    await terminal.answer('Visit it\\?\n.*I will visit it', enter)
    expect(await terminal.ended).toBe(0)
    expect(await opened()).toBe('')
  })
})

describe('hostile text', () => {
  test('reaches the screen without a control sequence, in questions, titles, choices and results', async () => {
    const { url } = await startServer()
    const terminal = new Terminal(['call', url, 'hostile'])
    await terminal.answer('red', enter)
    expect(await terminal.ended).toBe(0)
    const shown = '\\x1b]0;owned\\x07 \\x1b[2J \\x9b5A \\u{202e}gnp.exe \\u{200b}hidden'
    expect(terminal.text.replaceAll(/\n\W*/g, '').split(shown).length - 1).toBeGreaterThanOrEqual(4)
    for (const part of ['\u001B]0;', '\u0007', '\u001B[2J', '\u009B', '\u202E', '\u200B']) {
      expect(terminal.raw).not.toContain(part)
    }
    expect(terminal.text).toContain('more characters)')
    expect(terminal.text.length).toBeLessThan(30_000)
  })

  test('reaches a table, and a script, without one too', async () => {
    const { url } = await startServer()
    const plain = { NO_COLOR: '1' }
    const [table, json] = [new Terminal(['tools', url], plain), new Terminal(['tools', url, '--json'], plain)]
    expect(await table.ended).toBe(0)
    expect(await json.ended).toBe(0)
    for (const part of ['\u0007', '\u001B', '\u009B', '\u202E', '\u200B']) {
      expect(table.raw).not.toContain(part)
      expect(json.raw).not.toContain(part)
    }
    const tools = JSON.parse(json.raw) as { name: string; description?: string }[]
    expect(tools.find(({ name }) => name === 'hostile')?.description).toBe(HOSTILE)
  })
})

test('NO_COLOR leaves out every colour, and the questions are asked all the same', async () => {
  const { url } = await serveDemo()
  const coloured = new Terminal(['call', url, 'deploy', 'env=prod'])
  const plain = new Terminal(['call', url, 'deploy', 'env=prod'], { NO_COLOR: '1' })
  for (const terminal of [coloured, plain]) {
    await terminal.answer('confirm - Go ahead\\?', 'y')
    expect(await terminal.ended).toBe(0)
  }
  expect(coloursIn(coloured.raw)).not.toEqual([])
  expect(coloursIn(plain.raw)).toEqual([])
})

test('a saved call is gone on with in a terminal', async () => {
  const { url } = await serveDemo()
  const path = join(await folder(), 'pending.json')
  const saving = new Terminal(['call', url, 'deploy', 'env=prod', '--save', path])
  expect(await saving.ended).toBe(4)
  const resuming = new Terminal(['resume', path])
  await resuming.answer('confirm', 'y')
  expect(await resuming.ended).toBe(0)
  expect(resuming.text).toMatch(/Deployed \w{7} to prod$/)
})

/** In place of the platform's opener: writes down what it is given. */
async function fakeBrowser() {
  const path = await folder()
  const log = join(path, 'opened')
  await writeFile(log, '')
  for (const name of ['xdg-open', 'open']) {
    await writeFile(join(path, name), `#!/bin/sh\nprintf '%s\\n' "$@" >> '${log}'\n`)
    await chmod(join(path, name), 0o755)
  }
  const env = { PATH: `${path}${delimiter}${process.env['PATH']}` }
  return { env, opened: () => readFile(log, 'utf8') }
}

function coloursIn(raw: string): string[] {
  return raw.split('\u001B[').filter((part) => /^[\d;]*m/.test(part))
}

describe('a saved call that names a command', () => {
  test.each([
    ['no', 'n'],
    ['Enter alone', enter],
    ['Escape', escape],
  ])('is not resumed by %s, and nothing is run', async (_what, keys) => {
    const { path, mark } = await savedCommand()
    const terminal = new Terminal(['resume', path])
    await terminal.answer('Do it\\?', keys)
    expect(await terminal.ended).toBe(4)
    expect(terminal.text).toContain('rally: You did not agree. Nothing was run or sent.')
    expect(terminal.text.replaceAll(/[\s│]+/g, ' ')).toContain(`'a \\x1b[2JDo it? Yes' in`)
    expect(existsSync(mark)).toBe(false)
  })

  test('is resumed by yes', async () => {
    const { path, mark } = await savedCommand()
    const terminal = new Terminal(['resume', path])
    await terminal.answer('Do it\\?', 'y')
    expect(await terminal.ended).toBe(3)
    expect(existsSync(mark)).toBe(true)
  })
})

/** A saved call whose command leaves a file behind. */
async function savedCommand(): Promise<{ path: string; mark: string }> {
  const inside = await folder()
  const mark = join(inside, 'was-run')
  const path = join(inside, 'pending.json')
  const pending = {
    version: 1,
    revision: '2026-07-28',
    method: 'tools/call',
    params: { name: 'a' },
    requestState: 's',
  }
  // A line break would make the question look like another one.
  const args = ['-e', `require('fs').writeFileSync(${JSON.stringify(mark)}, '')`, 'a\n\u001B[2JDo it? Yes']
  await writeFile(path, JSON.stringify({ rally: 1, server: { command: process.execPath, args, cwd: inside }, pending }))
  return { path, mark }
}
