// Which server is meant: an address, or a command after `--`; and what goes along to it.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ServerCommand } from '../client/transports/child.ts'
import type { Root } from '../protocol/messages.ts'
import { clean } from './clean.ts'
import { WrongUse } from './exit.ts'

/** As it is kept in a file, too. */
export type Server = { readonly url: string } | ServerCommand

/** What was typed before the `--`, and the command after it. */
export interface Typed {
  readonly words: readonly string[]
  readonly command: readonly string[] | undefined
}

export function splitCommand(argv: readonly string[]): Typed {
  const at = argv.indexOf('--')
  return at < 0 ? { words: argv, command: undefined } : { words: argv.slice(0, at), command: argv.slice(at + 1) }
}

/** The server, and the words that are left. Without a command, the first word is the server's address. */
export function takeServer({ words, command }: Typed): { server: Server; rest: readonly string[] } {
  if (command !== undefined) {
    const [program, ...args] = command
    if (program === undefined) throw new WrongUse('After -- comes the command that starts the server.')
    const [first] = words
    if (first !== undefined && isAddress(first)) {
      throw new WrongUse('The server is named twice: by its address and by the command after --. Leave one out.')
    }
    return { server: { command: program, args, cwd: process.cwd() }, rest: words }
  }
  const [url, ...rest] = words
  if (url === undefined || !isAddress(url)) {
    const said = url === undefined ? 'Which server?' : `"${url}" is no address of a server.`
    throw new WrongUse(`${said} Give a URL first, or the command that starts it after --.`)
  }
  return { server: { url }, rest }
}

export function describeServer(server: Server): string {
  return 'url' in server ? server.url : [server.command, ...(server.args ?? [])].join(' ')
}

/** What to type to come back to a task. The id is the server's word, and goes into a shell. */
export function commandFor(server: Server, taskId: string): string {
  const id = quoted(taskId)
  if ('url' in server) return `rally task ${quoted(server.url)} ${id}`
  return ['rally task', id, '--', ...[server.command, ...(server.args ?? [])].map(quoted)].join(' ')
}

/** A word of a shell that is nothing but itself. */
function quoted(word: string): string {
  if (/^[\w./:@%+,-]+$/.test(word)) return word
  return `'${clean(word, Infinity).replaceAll("'", `'\\''`)}'`
}

/** Our own environment is not a server's to see, but for what is named: `NAME=value`, or `NAME` for ours. */
export function readEnvironment(named: readonly string[], own: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    named.map((text): [string, string] => {
      const [name = '', ...value] = text.split('=')
      if (name === '') throw new WrongUse(`-e ${text} names no variable: write NAME=value, or NAME to pass on yours.`)
      if (value.length > 0) return [name, value.join('=')]
      const ours = own[name]
      if (ours === undefined) throw new WrongUse(`-e ${name}: there is no variable of that name to pass on.`)
      return [name, ours]
    }),
  )
}

const HEADER = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/

/** `Name: value` each, and the token unless one of them says who is calling. */
export function readHeaders(typed: readonly string[], token: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  if (token !== undefined && token !== '') headers['authorization'] = `Bearer ${token}`
  for (const text of typed) {
    const [, name, value] = HEADER.exec(text) ?? []
    // Not repeated here: it may be a secret.
    if (name === undefined || value === undefined) throw new WrongUse("A header is written as -H 'Name: value'.")
    headers[name.toLowerCase()] = value
  }
  return headers
}

export function readRoots(paths: readonly string[]): Root[] {
  return paths.map((path) => ({ uri: pathToFileURL(resolve(path)).href }))
}

export function isAddress(word: string): boolean {
  return /^https?:\/\//i.test(word)
}
