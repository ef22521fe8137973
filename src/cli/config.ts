// Reads the servers in a configuration file of Claude, Cursor or VS Code. The file may come from somebody else, as part of a project:
// a command in it is run, and a variable is sent to an address in it, only after the user agreed.
import { readFile } from 'node:fs/promises'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import { UsageError } from './exit.ts'
import type { ConfiguredServer, Server } from './server.ts'
import { isAddress } from './server.ts'

const MAX_FILE_BYTES = 4 * 1_048_576

export async function readConfig(
  path: string,
  name: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<ConfiguredServer> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UsageError(`--config ${path}: it cannot be read (${error.message}).`)
  })
  if (text.length > MAX_FILE_BYTES)
    throw new UsageError(`--config ${path}: it must have at most ${MAX_FILE_BYTES} bytes.`)
  const servers = serversIn(parse(text, path), path)
  const names = Object.keys(servers)
  if (name === undefined) throw new UsageError(`Which server? ${path} has ${names.join(', ') || 'none'}.`)
  if (!Object.hasOwn(servers, name)) {
    throw new UsageError(`--config ${path}: there is no server ${shown(name)}. It has ${names.join(', ') || 'none'}.`)
  }
  const place = { where: `--config ${path}: server ${shown(name)}`, env, filledIn: new Set<string>() }
  const written = readServer(servers[name], place.where)
  return { server: filledIn(written, place), written, variables: [...place.filledIn] }
}

/** VS Code allows comments, and commas at the end. */
function parse(text: string, path: string): unknown {
  const plain = text.replaceAll(
    /("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (_, string?: string) => string ?? ' ',
  )
  const strict = plain.replaceAll(/("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])/g, (_, string?: string) => string ?? '')
  try {
    return JSON.parse(strict)
  } catch (error) {
    throw new UsageError(`--config ${path}: it is not JSON (${(error as Error).message}).`)
  }
}

/** `mcpServers` in the files of Claude and Cursor, `servers` in `mcp.json` of VS Code, `mcp.servers` in its settings. */
function serversIn(file: unknown, path: string): Record<string, unknown> {
  const { mcpServers, servers, mcp } = isObject(file) ? file : {}
  const found = mcpServers ?? servers ?? (isObject(mcp) ? mcp['servers'] : undefined)
  if (isObject(found)) return found
  throw new UsageError(`--config ${path}: it has neither mcpServers nor servers.`)
}

/** The server as the file has it. */
function readServer(entry: unknown, where: string): Server {
  const { command, args = [], env = {}, cwd, url, serverUrl = url, headers = {}, type } = isObject(entry) ? entry : {}
  if (type === 'sse')
    throw new UsageError(`${where} is of type sse, which rally does not support. Use its http address.`)
  if (serverUrl !== undefined)
    return { url: textOf(serverUrl, 'url', where), headers: textsOf(headers, 'headers', where) }
  if (typeof command !== 'string' || command === '') throw new UsageError(`${where} must have a command or a url.`)
  if (!Array.isArray(args)) throw new UsageError(`${where}: args must be a list.`)
  return {
    command: textOf(command, 'command', where),
    args: args.map((arg) => textOf(arg, 'args', where)),
    env: textsOf(env, 'env', where),
    ...(cwd !== undefined && { cwd: textOf(cwd, 'cwd', where) }),
  }
}

function textsOf(values: unknown, what: string, where: string): Record<string, string> {
  if (!isObject(values)) throw new UsageError(`${where}: ${what} must be an object.`)
  return mapped(values, (value) => textOf(value, what, where))
}

function textOf(value: unknown, what: string, where: string): string {
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  if (!isPlain || String(value).includes('\0')) throw new UsageError(`${where}: ${what} must contain strings.`)
  return String(value)
}

function mapped<T>(values: Readonly<Record<string, T>>, change: (value: T) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]))
}

interface Place {
  readonly where: string
  readonly env: NodeJS.ProcessEnv
  /** The names of the variables that were filled in. */
  readonly filledIn: Set<string>
}

function filledIn(written: Server, place: Place): Server {
  if ('url' in written) {
    const url = expand(written.url, 'url', place)
    if (!isAddress(url) || !URL.canParse(url)) {
      const got = shown(written.url)
      throw new UsageError(`${place.where} must have a url that begins with http: or https:, got ${got}.`)
    }
    return { url, headers: mapped(written.headers ?? {}, (value) => expand(value, 'headers', place)) }
  }
  const { command, args = [], env = {}, cwd } = written
  return {
    command: expand(command, 'command', place),
    args: args.map((arg) => expand(arg, 'args', place)),
    env: mapped(env, (value) => expand(value, 'env', place)),
    cwd: cwd === undefined ? process.cwd() : expand(cwd, 'cwd', place),
  }
}

/** `${NAME}` and `${NAME:-default}` as in Claude, `${env:NAME}` and `${workspaceFolder}` as in VS Code and Cursor. */
const VARIABLE = /\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}|\$\{([^}]*)\}/g

function expand(text: string, what: string, { where, env, filledIn: names }: Place): string {
  return text.replaceAll(VARIABLE, (_, name?: string, fallback?: string, other?: string) => {
    const own = name === undefined ? undefined : valueOf(name, env)
    if (name !== undefined && own !== undefined) names.add(name)
    const known = own ?? fallback
    if (known !== undefined) return known
    throw new UsageError(
      name === undefined
        ? `${where}: ${what} contains \${${other}}, which rally cannot fill in. Write its value into a variable, as \${NAME}.`
        : `${where}: ${what} contains \${${name}}, and there is no variable with that name.`,
    )
  })
}

function valueOf(name: string, env: NodeJS.ProcessEnv): string | undefined {
  if (name === 'workspaceFolder') return process.cwd()
  return name === 'userHome' ? (env['HOME'] ?? '') : env[name]
}
