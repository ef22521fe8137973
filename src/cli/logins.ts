// The logins of the user, in the folder for configuration. Each is a file that only its owner may read. No command prints a token.
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { SavedLogin, TokenStore } from '../client/oauth/options.ts'
import { isObject } from '../protocol/json.ts'
import { UsageError } from './exit.ts'

export interface KnownLogin {
  readonly server: string
  readonly login: SavedLogin
}

const VERSION = 1
const MAX_FILE_BYTES = 262_144

export class LoginFiles implements TokenStore {
  readonly #folder: string

  constructor(env: NodeJS.ProcessEnv) {
    this.#folder = join(configFolder(env), 'mcp-rally', 'logins')
  }

  async get(server: string): Promise<SavedLogin | undefined> {
    const known = await this.#read(this.#path(server))
    return known?.server === server ? known.login : undefined
  }

  async set(server: string, login: SavedLogin): Promise<void> {
    const path = this.#path(server)
    const beside = `${path}.${process.pid}.tmp`
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 })
      await writeFile(beside, `${JSON.stringify({ rally: VERSION, server, login })}\n`, { mode: 0o600, flag: 'wx' })
      await rename(beside, path)
    } catch (error) {
      await rm(beside, { force: true })
      throw new UsageError(`The login cannot be saved: ${(error as Error).message}`, { cause: error })
    }
  }

  async delete(server: string): Promise<void> {
    await rm(this.#path(server), { force: true })
  }

  async all(): Promise<KnownLogin[]> {
    const names = await readdir(this.#folder).catch(() => [])
    const files = names.filter((name) => name.endsWith('.json')).toSorted()
    const known = await Promise.all(files.map((name) => this.#read(join(this.#folder, name))))
    return known.filter((each) => each !== undefined)
  }

  /** By a digest: an address may contain characters that a file name cannot. */
  #path(server: string): string {
    return join(this.#folder, `${createHash('sha256').update(server).digest('hex').slice(0, 32)}.json`)
  }

  /** Returns undefined for a file that is missing or damaged: the user logs in again. */
  async #read(path: string): Promise<KnownLogin | undefined> {
    const text = await readFile(path, 'utf8').catch(() => '')
    if (text === '' || text.length > MAX_FILE_BYTES) return undefined
    try {
      const saved: unknown = JSON.parse(text)
      if (!isObject(saved) || saved['rally'] !== VERSION) return undefined
      const { server, login } = saved
      return typeof server === 'string' && isObject(login)
        ? { server, login: login as unknown as SavedLogin }
        : undefined
    } catch {
      return undefined
    }
  }
}

function configFolder(env: NodeJS.ProcessEnv): string {
  const named = process.platform === 'win32' ? env['APPDATA'] : env['XDG_CONFIG_HOME']
  return named !== undefined && named !== '' ? named : join(env['HOME'] ?? homedir(), '.config')
}

/** True if a login for the server is kept. */
export async function hasLogin(url: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await new LoginFiles(env).get(addressOf(url))) !== undefined
}

/** As the client writes it. */
export function addressOf(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return `${origin}${pathname === '/' ? '' : pathname}${search}`
}

/** Who the token is for, if it says so. It is only shown, and decides nothing. */
export function userOf({ accessToken }: SavedLogin): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(accessToken?.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const { email, preferred_username: name, sub } = isObject(claims) ? claims : {}
    return [email, name, sub].find((each) => typeof each === 'string')
  } catch {
    return undefined
  }
}
