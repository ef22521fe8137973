// Asks before rally does what a file says, a saved call or a configuration: runs a command, or sends secrets to an address. The file may come from
// somebody else.
import { cleanLine } from './clean.ts'
import { Unanswered, UsageError } from './exit.ts'
import type { Server } from './server.ts'
import { shellQuoted } from './server.ts'
import type { RunContext, ServerOptions } from './context.ts'

export interface ConsentOptions extends ServerOptions {
  /** The user agreed when the command was typed. */
  readonly yes?: boolean
}

/** Throws if the user does not agree, or cannot be asked. An address that gets no secret needs no consent. */
export async function askConsent(
  server: Server,
  options: ConsentOptions,
  { console, env }: RunContext,
  why = 'To resume this call',
): Promise<void> {
  const act = riskOf(server, options, env)
  if (act === undefined || options.yes === true) return
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
function riskOf(server: Server, { header = [] }: ServerOptions, env: NodeJS.ProcessEnv): string | undefined {
  if (!('url' in server)) {
    const { command, args = [], cwd, env: variables = {} } = server
    const folder = cwd === undefined ? '' : ` in ${cleanLine(shellQuoted(cwd), Infinity)}`
    // A variable such as NODE_OPTIONS can change what the command does. Their values may be secrets.
    const names = Object.keys(variables)
    const beside = names.length === 0 ? '' : ` with the variables ${cleanLine(names.join(', '), Infinity)}`
    return `run ${cleanLine([command, ...args].map(shellQuoted).join(' '), Infinity)}${folder}${beside}`
  }
  const hasToken = (env['RALLY_TOKEN'] ?? '') !== ''
  const secrets = [
    ...(hasToken ? ['your token (RALLY_TOKEN)'] : []),
    ...(header.length > 0 ? ['your headers (-H)'] : []),
  ]
  // As it is used: in ASCII, so that no letter only looks like one of a host that the user knows.
  return secrets.length === 0 ? undefined : `send ${secrets.join(' and ')} to ${new URL(server.url).href}`
}
