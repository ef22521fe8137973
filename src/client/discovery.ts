// What a server says about itself: its name, its capabilities and its revisions, of which the client chooses one.
import type { Icon, Implementation, ServerCapabilities } from '../protocol/messages.ts'
import { META_SERVER_INFO, REVISION, writeRetry } from '../protocol/revisions/2026-07-28.ts'
import type { Rounds } from '../protocol/revisions/rounds.ts'
import { OPT_IN } from '../protocol/revisions/rounds.ts'
import { isObject } from '../protocol/json.ts'
import { badResponse, ClientError } from './errors.ts'
import { isSmall, isText, MAX_BYTES, MAX_LENGTH, shortened } from './server-text.ts'

/** What the server says about itself. */
export interface ServerInfo extends Implementation {
  /** How to use this server, written for the model. */
  readonly instructions?: string
  /** What the server can do, as it declares it. */
  readonly capabilities: ServerCapabilities
}

/** The revisions that this client uses by default, the best first. Legacy revisions are in `legacy/`. */
export const REVISIONS: readonly string[] = [REVISION]

/** Those in which the client carries a call from round to round, so that it can be saved. */
export const RESUMABLE_REVISIONS: readonly string[] = [...REVISIONS, ...OPT_IN]

/** How a request brings the answers and the state of the round before. */
export type RetryFormat = Pick<Rounds, 'writeRetry'>

/** The format of `REVISIONS`. */
export const RETRY_FORMAT: RetryFormat = { writeRetry }

/** Reads the untrusted result of `server/discover`. */
export function readDiscovery(
  result: Record<string, unknown>,
  address: string,
): { server: ServerInfo; revision: string } {
  return { revision: chooseRevision(result['supportedVersions']), server: readServer(result, address) }
}

/** Reads the untrusted result of `server/discover` or `initialize`. A server without a name is called by its address. */
export function readServer(result: Record<string, unknown>, address: string): ServerInfo {
  const { capabilities, instructions, _meta: meta, serverInfo } = result
  const info = isObject(meta) && isObject(meta[META_SERVER_INFO]) ? meta[META_SERVER_INFO] : serverInfo
  return {
    ...readInfo(info, address),
    ...(typeof instructions === 'string' && { instructions: shortened(instructions, MAX_LENGTH.instructions) }),
    capabilities: readCapabilities(capabilities),
  }
}

/** `supported` is untrusted. `cause` is the error that contained it. */
export function chooseRevision(supported: unknown, cause?: Error): string {
  const theirs: unknown[] = Array.isArray(supported) ? supported : []
  const common = REVISIONS.find((revision) => theirs.includes(revision))
  if (common !== undefined) return common
  const named = theirs.filter((revision) => typeof revision === 'string').slice(0, MAX_NAMED)
  throw new NoCommonRevision(named, cause)
}

/** The server answered, and named none of `REVISIONS`. */
export class NoCommonRevision extends ClientError {
  /** True if the server may be a legacy one: it named an older revision, or none at all. */
  readonly mayBeLegacy: boolean

  constructor(named: readonly string[], cause: Error | undefined) {
    super(
      'REVISION',
      `The server supports ${named.length === 0 ? 'no revision that it names' : `revision ${named.join(', ')}`}, this client supports ${REVISIONS.join(', ')}.`,
      cause === undefined ? {} : { cause },
    )
    this.mayBeLegacy = named.length === 0 || named.some((revision) => RELEASE.test(revision) && revision < REVISION)
  }

  override get name(): string {
    return ClientError.name
  }
}

/** Releases are named by their dates. */
const RELEASE = /^\d{4}-\d{2}-\d{2}$/

const MAX_NAMED = 10

function readInfo(info: unknown, address: string): Implementation {
  const { name, version, title, description, websiteUrl, icons } = isObject(info) ? info : {}
  return {
    name: typeof name === 'string' && name !== '' ? shortened(name, MAX_LENGTH.label) : address,
    version: typeof version === 'string' ? shortened(version, MAX_LENGTH.label) : '',
    ...(typeof title === 'string' && { title: shortened(title, MAX_LENGTH.label) }),
    ...(typeof description === 'string' && { description: shortened(description, MAX_LENGTH.message) }),
    ...(isText(websiteUrl, MAX_BYTES.uri) && { websiteUrl }),
    ...(Array.isArray(icons) && { icons: icons.filter(isIcon).slice(0, MAX_ICONS) }),
  }
}

/** It is kept as long as the client. */
function readCapabilities(capabilities: unknown): ServerCapabilities {
  if (!isObject(capabilities)) return {}
  if (isSmall(capabilities, MAX_BYTES.capabilities)) return capabilities
  throw badResponse(`its capabilities must have at most ${MAX_BYTES.capabilities} bytes`)
}

const MAX_ICONS = 100

function isIcon(icon: unknown): icon is Icon {
  return isObject(icon) && typeof icon['src'] === 'string' && isSmall(icon, MAX_BYTES.icon)
}
