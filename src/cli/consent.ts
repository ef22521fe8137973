// Asks before rally does what a file says, a saved call or a configuration: runs a command, or sends secrets to an address. The file may come from
// somebody else.
import type { ServerCommand } from '../client/transports/child.ts'
import { cleanLine } from './clean.ts'
import type { RunContext, ServerOptions } from './context.ts'
import { Unanswered, UsageError } from './exit.ts'
import { hasLogin } from './logins.ts'
import type { ConfiguredServer, Server } from './server.ts'
import { headersFor, shellQuoted } from './server.ts'

export interface ConsentOptions extends ServerOptions {
  /** The user agreed when the command was typed. */
  readonly yes?: boolean
}

/** What a file asks for. */
interface FileRequest extends Partial<ConfiguredServer> {
  readonly server: Server
  /** The beginning of the question: what the user wants to do. */
  readonly why: string
}

/** Throws if the user does not agree, or cannot be asked. An address that gets no secret needs no consent. */
export async function askConsent(
  request: FileRequest,
  options: ConsentOptions,
  { console, env }: RunContext,
): Promise<void> {
  if (options.yes === true) return
  const { why } = request
  const act = await riskOf(request, options, env)
  if (act === undefined) return
  if (!console.isInteractive) {
    throw new UsageError(
      `${why}, rally must ${act}, as the file says, and there is no terminal to ask in. If you trust the file, add --yes.`,
    )
  }
  const { Escaped, Prompts } = await import('./prompts.ts')
  const prompts = new Prompts(console)
  prompts.warn(`${why}, rally must\n${act},\nas the file says. Agree only if you trust the file.`)
  const isAgreed = await prompts.confirm('Do it?', false).catch((error: unknown) => {
    if (error instanceof Escaped) return false
    throw error
  })
  if (!isAgreed) throw new Unanswered('You did not agree. Nothing was run or sent.')
}

/** What the file makes rally do that the user has to know. Nothing of it is cut: the end may be what matters. */
async function riskOf(
  { server, written = server, variables = [] }: FileRequest,
  options: ServerOptions,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  if (!('url' in written)) return `run ${commandIn(written)}`
  const { header = [] } = options
  const hasToken = (env['RALLY_TOKEN'] ?? '') !== ''
  const isLoggedIn = 'url' in server && (await hasLogin(server.url, env))
  const names = Object.keys(written.headers ?? {})
  const secrets = [
    ...(hasToken ? ['your token (RALLY_TOKEN)'] : []),
    ...(isLoggedIn && !('authorization' in headersFor(written, options, env)) ? ['your login'] : []),
    ...(header.length > 0 ? ['your headers (-H)'] : []),
    ...(variables.length > 0
      ? [`your ${variables.length === 1 ? 'variable' : 'variables'} ${variables.join(', ')}`]
      : []),
    ...(names.length > 0 ? [`the headers ${cleanLine(names.join(', '), Infinity)} of the file`] : []),
  ]
  return secrets.length === 0 ? undefined : `send ${secrets.join(' and ')} to ${addressIn(written.url)}`
}

function commandIn({ command, args = [], cwd, env = {} }: ServerCommand): string {
  const folder = cwd === undefined ? '' : ` in ${cleanLine(shellQuoted(cwd), Infinity)}`
  // A variable such as NODE_OPTIONS can change what the command does. Their values may be secrets.
  const names = Object.keys(env)
  const beside = names.length === 0 ? '' : ` with the variables ${cleanLine(names.join(', '), Infinity)}`
  return `${cleanLine([command, ...args].map(shellQuoted).join(' '), Infinity)}${folder}${beside}`
}

/** In ASCII, so that no letter only looks like one of a host that the user knows. */
function addressIn(url: string): string {
  const ascii = URL.canParse(url) ? new URL(url).href : encodeURI(url.toWellFormed())
  return ascii.replaceAll('%7B', '{').replaceAll('%7D', '}')
}
