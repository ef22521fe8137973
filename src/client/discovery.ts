// Who the server says it is, and what it says it can do.
import type { Icon, Implementation, ServerCapabilities } from '../protocol/messages.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'
import { isObject } from '../protocol/json.ts'
import { chooseRevision } from './revision.ts'

export interface ServerInfo extends Implementation {
  /** For the model: how to use this server. */
  readonly instructions?: string
  readonly capabilities: ServerCapabilities
}

/** Reads the untrusted result of `server/discover`. A server need not say its name; then `address` is. */
export function readDiscovery(
  result: Record<string, unknown>,
  address: string,
): { server: ServerInfo; revision: string } {
  return { revision: chooseRevision(result['supportedVersions']), server: readServer(result, address) }
}

/** From an untrusted result, be it of `server/discover` or of an older `initialize`. */
export function readServer(result: Record<string, unknown>, address: string): ServerInfo {
  const { capabilities, instructions, _meta: meta, serverInfo } = result
  const said = isObject(meta) && isObject(meta[META_SERVER_INFO]) ? meta[META_SERVER_INFO] : serverInfo
  return {
    ...readInfo(said, address),
    ...(typeof instructions === 'string' && { instructions }),
    capabilities: isObject(capabilities) ? capabilities : {},
  }
}

function readInfo(said: unknown, address: string): Implementation {
  const { name, version, title, description, websiteUrl, icons } = isObject(said) ? said : {}
  return {
    name: typeof name === 'string' && name !== '' ? name : address,
    version: typeof version === 'string' ? version : '',
    ...(typeof title === 'string' && { title }),
    ...(typeof description === 'string' && { description }),
    ...(typeof websiteUrl === 'string' && { websiteUrl }),
    ...(Array.isArray(icons) && { icons: icons.filter(isIcon) }),
  }
}

function isIcon(icon: unknown): icon is Icon {
  return isObject(icon) && typeof icon['src'] === 'string'
}
