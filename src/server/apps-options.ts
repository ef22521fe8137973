// The option `apps`, and what it has in common with the option `page`.
import type { ClientInfo } from '../flow/caller.ts'
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'

/** Options of questions in MCP Apps. */
export interface AppsOptions {
  /** How long a call of `rally_result` waits for the user, in milliseconds. Default 25 000. */
  waitMs?: number
  /** How long the user may take for one round, and how long its outcome is kept, in seconds. `maxAge` limits it too. Default 86 400. */
  ttl?: number
  /**
   * Whether a client is asked in a page: `true` or `false` for hosts that declare the wrong thing, `undefined` for all others.
   * Default: as the client declares.
   */
  when?: (client: ClientInfo) => boolean | undefined
}

/** What both options have. */
export interface CheckedAppsOptions {
  readonly waitMs: number
  readonly ttl: number
  readonly when: AppsOptions['when']
}

/** Checks the option when the app is built. Returns `undefined` if it is off. */
export function readAppsOptions(given: unknown): CheckedAppsOptions | undefined {
  if (given === false) return undefined
  const options: unknown = given === true ? {} : given
  if (isObject(options)) return readSharedOptions('apps', options)
  throw new RallyError('OPTION_INVALID', `\`apps\` must be true, false or an object of options, got ${shown(given)}.`)
}

export function readSharedOptions(name: 'apps' | 'page', options: AppsOptions): CheckedAppsOptions {
  const { waitMs = 25_000, ttl = 86_400, when } = options
  if (!Number.isSafeInteger(waitMs) || waitMs < 0) {
    throw new RallyError(
      'OPTION_INVALID',
      `\`${name}.waitMs\` must be a whole number of 0 or more, got ${shown(waitMs)}.`,
    )
  }
  if (!(ttl > 0 && Number.isSafeInteger(Math.round(ttl * 1000)))) {
    throw new RallyError('OPTION_INVALID', `\`${name}.ttl\` must be a number of seconds above 0, got ${shown(ttl)}.`)
  }
  if (when !== undefined && typeof when !== 'function') {
    throw new RallyError('OPTION_INVALID', `\`${name}.when\` must be a function of the client, got ${shown(when)}.`)
  }
  return { waitMs, ttl, when }
}
