// The terminal client in a real pseudo-terminal, and the screen as its user sees it.
import type { IPty } from '@lydell/node-pty'
import { spawn } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { onTestFinished } from 'vitest'
import { CLI } from './cli.ts'

/** A sequence that no screen shows. */
// oxlint-disable-next-line no-control-regex -- the escape character is what is looked for
const ENDED = /\u001B\]777;(\d+)\u0007/

export const KEYS = { enter: '\r', down: '\u001B[B', escape: '\u001B', space: ' ', ctrlC: '\u0003', ctrlD: '\u0004' }

/**
 * Runs the client, tells its exit code, and only then, when that was read, lets go of the terminal: what a program wrote
 * last is lost where it ends before all was read. Ctrl-C is for the client alone.
 */
const SHELL = `trap : INT; "$@"; printf '\\033]777;%s\\007' "$?"; read -r _`

export class Terminal {
  /** Everything that was written, as it was. */
  raw = ''
  readonly ended: Promise<number>
  readonly #pty: IPty
  readonly #screen: xterm.Terminal
  readonly #waiting = new Set<() => void>()
  #isOver = false

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}, cols = 100) {
    this.#screen = new xterm.Terminal({ cols, rows: 60, scrollback: 2_000, allowProposedApi: true })
    this.#pty = spawn('/bin/sh', ['-c', SHELL, 'sh', process.execPath, CLI, ...args], {
      cols,
      rows: 60,
      env: { PATH: process.env['PATH'], TERM: 'xterm-256color', ...env },
    })
    let isGone = false
    this.#pty.onExit(() => {
      isGone = true
    })
    onTestFinished(() => {
      if (!isGone) this.#pty.kill('SIGKILL')
    })
    this.ended = new Promise((resolve) => {
      const reading = this.#pty.onData((data) => {
        this.raw += data
        const [shown = '', code] = this.raw.split(ENDED)
        this.#screen.write(data, () => this.#look(code !== undefined))
        if (code === undefined) return
        this.raw = shown
        reading.dispose()
        this.#screen.write('', () => resolve(Number(code)))
        this.#pty.write('\r')
      })
    })
  }

  /** The screen, and what has scrolled off it. */
  get text(): string {
    const { active } = this.#screen.buffer
    const lines = Array.from({ length: active.length }, (_, row) => active.getLine(row)?.translateToString(true) ?? '')
    return lines.join('\n').trimEnd()
  }

  type(keys: string): void {
    this.#pty.write(keys)
  }

  /** Waits until the screen shows it. */
  shows(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(this.text)
        if (found) resolve(found)
        else if (this.#isOver) reject(new Error(`It ended without showing ${String(pattern)}:\n${this.text}`))
        else return
        this.#waiting.delete(look)
      }
      this.#waiting.add(look)
      look()
    })
  }

  /** Waits for a question to be the one that is asked, and answers it. */
  async answer(label: string, keys: string): Promise<void> {
    await this.shows(new RegExp(`\u25C6 {2}${label}`))
    this.type(keys)
  }

  #look(isOver: boolean): void {
    this.#isOver = isOver
    for (const look of this.#waiting) look()
  }
}

const PAGE = /(http:\/\/127\.0\.0\.1:\d+\/auth[^◆]*)/

/** The page of a login that the terminal shows. The screen has broken it into lines. */
export async function pageIn(terminal: Terminal): Promise<URL> {
  await terminal.shows(/Waiting for the browser/)
  const [, broken = ''] = PAGE.exec(terminal.text) ?? []
  return new URL(broken.replaceAll(/[\s│]/g, ''))
}
