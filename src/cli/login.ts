// Logs the person at the terminal in: shows who asks for what, opens the page, and waits for the browser to come back.
import type { Command } from 'commander'
import type { AuthorizeContext, OAuthOptions } from '../client/oauth/options.ts'
import { isSecure } from '../client/oauth/zones.ts'
import type { Callback } from './callback.ts'
import { cleanJson, cleanLine } from './clean.ts'
import type { CommandContext } from './command.ts'
import { added } from './command.ts'
import type { Console } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted, Unanswered, UsageError } from './exit.ts'
import type { KnownLogin } from './logins.ts'
import { addressOf, hasLogin, LoginFiles, userOf } from './logins.ts'
import type { RunContext, ServerOptions } from './context.ts'
import { isAddress } from './server.ts'
import { table } from './table.ts'

export function addLogins(program: Command, { runContext, run }: CommandContext): void {
  program
    .command('login')
    .usage('<server> [options]')
    .description('log in to a server, and keep the login for later commands')
    .argument('<server>')
    .option('--no-open', 'show the page of the login, but do not open it')
    .option('--scope <scope>', 'a scope to ask for (repeatable)', added)
    .option('--client-id <id>', 'a client that is registered already; RALLY_CLIENT_SECRET is its secret, if it has one')
    .action(async (url: string, options: LoginCommandOptions) => run(runLogin(addressIn(url), options, runContext)))
  program
    .command('logout')
    .usage('<server>')
    .description('forget the login to a server')
    .argument('<server>')
    .action(async (url: string) => run(runLogout(addressIn(url), runContext)))
  program
    .command('whoami')
    .usage('[server] [options]')
    .description('show your logins')
    .argument('[server]')
    .option('--json', 'print JSON, for scripts')
    .action(async (url: string | undefined, options: ServerOptions) =>
      run(runWhoami(url === undefined ? undefined : addressIn(url), options, runContext)),
    )
}

function addressIn(word: string): string {
  if (isAddress(word) && URL.canParse(word)) return word
  throw new UsageError(`"${word}" is not the URL of a server.`)
}

interface LoginCommandOptions extends ServerOptions {
  readonly open: boolean
  readonly scope?: readonly string[]
  readonly clientId?: string
}

/** `rally login`. */
async function runLogin(url: string, options: LoginCommandOptions, context: RunContext): Promise<ExitCode> {
  if (!isSecure(new URL(url))) throw new UsageError(`${url} must begin with https:, or be on this machine.`)
  if (!context.console.isInteractive)
    throw new UsageError('There is no terminal to log in at. Set RALLY_TOKEN instead.')
  const { login } = await import('../client/login.ts')
  const store = new LoginFiles(context.env)
  const person = new Person(context.console, { opens: options.open, asksFirst: false })
  const { clientId, scope = [] } = options
  const oauth = { ...(await clientOf(url, store, context.env, clientId)), ...person.oauth(store, url), scopes: scope }
  try {
    await login(url, { oauth, name: 'rally', signal: context.signal })
  } catch (error) {
    throw reasonFor(error)
  } finally {
    person.close()
  }
  const saved = (await store.all()).find(({ server }) => new URL(server).href === new URL(url).href)
  context.console.tell(`Logged in to ${url}${saved === undefined ? '' : ` at ${cleanLine(saved.login.issuer)}`}.`)
  return EXIT.done
}

/** `rally logout`. */
async function runLogout(url: string, { console, env, signal }: RunContext): Promise<ExitCode> {
  const { logout } = await import('../client/login.ts')
  const store = new LoginFiles(env)
  const oauth = { ...(await clientOf(url, store, env)), store }
  const wasLoggedIn = await logout(url, { oauth, signal })
  console.tell(wasLoggedIn ? `Logged out of ${url}.` : `There is no login for ${url}.`)
  return EXIT.done
}

/** `rally whoami`: all logins, or the one for a server. */
async function runWhoami(url: string | undefined, options: ServerOptions, context: RunContext): Promise<ExitCode> {
  const { console, env } = context
  const known = await new LoginFiles(env).all()
  const chosen = url === undefined ? known : known.filter(({ server }) => new URL(server).href === new URL(url).href)
  const described = chosen.map(describe)
  if (options.json === true) console.print(cleanJson(described))
  else if (described.length === 0)
    console.tell(url === undefined ? 'There are no logins.' : `There is no login for ${url}.`)
  else {
    const rows = described.map(({ server, user, issuer, scopes, expires }) => [
      server,
      user,
      issuer,
      scopes.join(' '),
      expires,
    ])
    console.print(table(['SERVER', 'USER', 'LOGIN', 'SCOPES', 'EXPIRES'], rows, console.columns).join('\n'))
  }
  return chosen.length === 0 ? EXIT.unanswered : EXIT.done
}

/** Everything but the secrets. */
function describe({ server, login }: KnownLogin) {
  const { issuer, granted = [], expiresAt, refreshToken } = login
  const expires = expiresAt === undefined ? 'unknown' : new Date(expiresAt).toISOString()
  return {
    server,
    user: userOf(login) ?? 'unknown',
    issuer,
    scopes: granted,
    expires: refreshToken === undefined ? expires : 'when it is not used',
  }
}

/** How a call logs in: with what was saved, and else by asking, if there is a person. Undefined if neither can be. */
export async function oauthFor(
  url: string,
  options: { readonly open?: boolean },
  { console, env }: RunContext,
): Promise<{ oauth: OAuthOptions; close: () => void } | undefined> {
  if (!isSecure(new URL(url))) return undefined
  const store = new LoginFiles(env)
  const client = await clientOf(url, store, env)
  if (!console.isInteractive) {
    return (await hasLogin(url, env)) ? { oauth: { ...client, store }, close: () => {} } : undefined
  }
  const person = new Person(console, { opens: options.open !== false, asksFirst: true })
  return { oauth: { ...client, ...person.oauth(store, url) }, close: () => person.close() }
}

/** A client that the user registered: by its id when logging in, and by RALLY_CLIENT_SECRET if it has a secret. */
async function clientOf(
  url: string,
  store: LoginFiles,
  env: NodeJS.ProcessEnv,
  clientId?: string,
): Promise<Pick<OAuthOptions, 'client'>> {
  const secret = env['RALLY_CLIENT_SECRET'] ?? ''
  const id = clientId ?? (secret === '' ? undefined : (await store.get(addressOf(url)))?.client?.id)
  return id === undefined ? {} : { client: { id, ...(secret !== '' && { secret }) } }
}

/** What the person did, if a login failed because of it. */
export function reasonFor(error: unknown): unknown {
  const { cause } = (error ?? {}) as { cause?: unknown }
  return cause instanceof Unanswered || cause instanceof Interrupted ? cause : error
}

interface PersonOptions {
  /** True if the page may be opened in the browser. */
  readonly opens: boolean
  /** True if the person did not ask for the login. */
  readonly asksFirst: boolean
}

/** The person at the terminal. */
class Person {
  readonly #console: Console
  readonly #options: PersonOptions
  #callback: Callback | undefined

  constructor(console: Console, options: PersonOptions) {
    this.#console = console
    this.#options = options
  }

  oauth(store: LoginFiles, url: string): OAuthOptions {
    return {
      store,
      redirectUrl: async () => {
        this.close()
        const { openCallback } = await import('./callback.ts')
        const { redirectUrl } = (await store.get(addressOf(url)))?.client ?? {}
        this.#callback = await openCallback(portOf(redirectUrl))
        return this.#callback.redirectUrl
      },
      onAuthorize: (page, context) => this.#authorize(page, context),
    }
  }

  close(): void {
    this.#callback?.close()
    this.#callback = undefined
  }

  async #authorize(page: URL, { issuer, server, scopes, signal, redirectUrl }: AuthorizeContext): Promise<string> {
    const { Escaped, Prompts, Withdrawn } = await import('./prompts.ts')
    const prompts = new Prompts(this.#console)
    const rights = scopes.length === 0 ? '' : `\nfor ${cleanLine(scopes.join(', '), 1_000)}`
    prompts.say(`${cleanLine(server)} wants you to log in at\n${cleanLine(issuer, Infinity)}${rights}`)
    const arrived = this.#callback?.address ?? new Promise<string>(() => {})
    const stop = new AbortController()
    signal.addEventListener('abort', () => stop.abort(), { once: true })
    prompts.until(stop.signal)
    try {
      if (this.#options.asksFirst && !(await prompts.confirm('Log in?', true))) throw new Escaped()
      const isOpened = this.#options.opens && (await openInBrowser(page))
      prompts.say(`${isOpened ? 'Your browser shows' : 'Open'} this page:\n${page.href}`)
      // A browser on another machine cannot come back here, so its address can be pasted.
      const pasted = prompts.text('Waiting for the browser. Or paste the address that it ends at', {
        placeholder: `${redirectUrl}?code=...`,
        check: (text) => (text.startsWith(redirectUrl) ? undefined : `It must begin with ${redirectUrl}`),
      })
      pasted.catch(() => {})
      return await Promise.race([pasted, arrived])
    } catch (error) {
      if (error instanceof Escaped || error instanceof Withdrawn)
        throw new Unanswered('You did not log in.', { cause: error })
      throw error
    } finally {
      stop.abort()
      this.close()
    }
  }
}

/** The user knows the page, because its address is shown. */
async function openInBrowser(page: URL): Promise<boolean> {
  const { openPage } = await import('./visit.ts')
  return openPage(page.href)
}

function portOf(redirectUrl: string | undefined): number | undefined {
  const port = redirectUrl === undefined || !URL.canParse(redirectUrl) ? 0 : Number(new URL(redirectUrl).port)
  return port === 0 ? undefined : port
}
