// The server of a command, as a URL or as a command after `--`, and the headers and variables for it.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ServerCommand } from '../client/transports/child.ts'
import type { Root } from '../protocol/messages.ts'
import { clean } from './clean.ts'
import type { ServerOptions } from './context.ts'
import { UsageError } from './exit.ts'

/** Also the form in which --save writes it, without secrets. */
export type Server = ServerUrl | ServerCommand

export interface ServerUrl {
  readonly url: string
  /** From a configuration file. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A server of a configuration file. */
export interface ConfiguredServer {
  readonly server: Server
  /** As the file has it. The values of variables may be secrets, so this is what the user is shown. */
  readonly written: Server
  /** The names of the variables that were filled in. */
  readonly variables: readonly string[]
}

/** What was typed before the `--`, and the command after it. */
export interface CommandLine {
  readonly words: readonly string[]
  readonly command: readonly string[] | undefined
}

export function splitCommand(argv: readonly string[]): CommandLine {
  const at = argv.indexOf('--')
  return at < 0 ? { words: argv, command: undefined } : { words: argv.slice(0, at), command: argv.slice(at + 1) }
}

/** Splits the words into the server and the rest. Without a command, the first word is the URL of the server. */
export function takeServer({ words, command }: CommandLine): { server: Server; rest: readonly string[] } {
  if (command !== undefined) {
    const [program, ...args] = command
    if (program === undefined) throw new UsageError('The command that starts the server is missing after --.')
    const [first] = words
    if (first !== undefined && isAddress(first)) {
      throw new UsageError('The server is given twice, as a URL and as a command after --. Leave one out.')
    }
    return { server: { command: program, args, cwd: process.cwd() }, rest: words }
  }
  const [url, ...rest] = words
  if (url === undefined || !isAddress(url)) {
    const said = url === undefined ? 'Which server?' : `"${url}" is not the URL of a server.`
    throw new UsageError(`${said} Give a URL first, or the command that starts it after --.`)
  }
  return { server: { url }, rest }
}

export function describeServer(server: Server): string {
  return 'url' in server ? server.url : [server.command, ...(server.args ?? [])].join(' ')
}

/** The command that follows a task. The id comes from the server and goes into a shell, so it is quoted. */
export function commandFor(server: Server, taskId: string): string {
  const id = shellQuoted(taskId)
  if ('url' in server) return `npx mcp-rally task ${shellQuoted(server.url)} ${id}`
  return ['npx mcp-rally task', id, '--', ...[server.command, ...(server.args ?? [])].map(shellQuoted)].join(' ')
}

/** Quotes a word so that no shell interprets it. */
export function shellQuoted(word: string): string {
  if (/^[\w./:@%+,-]+$/.test(word)) return word
  return `'${clean(word, Infinity).replaceAll("'", `'\\''`)}'`
}

/** The variables for a server: `NAME=value`, or `NAME` for our own. It does not see the rest of our environment. */
export function readEnvironment(named: readonly string[], own: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    named.map((text): [string, string] => {
      const [name = '', ...value] = text.split('=')
      if (name === '')
        throw new UsageError(
          `-e ${text}: the name of the variable is missing. Write NAME=value, or NAME to pass on yours.`,
        )
      if (value.length > 0) return [name, value.join('=')]
      const ours = own[name]
      if (ours === undefined) throw new UsageError(`-e ${name}: there is no variable with that name to pass on.`)
      return [name, ours]
    }),
  )
}

/** What is sent to an address: the headers of its configuration, the token, and the headers that were typed. */
export function headersFor({ headers = {} }: ServerUrl, { header = [] }: ServerOptions, env: NodeJS.ProcessEnv) {
  const lowered = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return { ...Object.fromEntries(lowered), ...readHeaders(header, env['RALLY_TOKEN']) }
}

const HEADER = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/

/** Headers as `Name: value`. The token is added unless one of them is Authorization. */
export function readHeaders(typed: readonly string[], token: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  if (token !== undefined && token !== '') headers['authorization'] = `Bearer ${token}`
  for (const text of typed) {
    const [, name, value] = HEADER.exec(text) ?? []
    // The message does not repeat the text, because it may be a secret.
    if (name === undefined || value === undefined) throw new UsageError("A header is written as -H 'Name: value'.")
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
