// The protected-resource metadata document (RFC 9728): where a client without a token learns which issuer to go to.
import { RallyError } from '../protocol/errors.ts'

/** The document's fields, spelled as on the wire. */
export interface ResourceMetadata {
  /** The resource's own address. */
  readonly resource: string
  /** Issuers whose tokens are taken. */
  readonly authorization_servers: readonly string[]
  /** The least that a client should ask for. */
  readonly scopes_supported?: readonly string[]
  /** How tokens are taken. */
  readonly bearer_methods_supported?: readonly string[]
  /** For people. */
  readonly resource_name?: string
  /** A page for developers. */
  readonly resource_documentation?: string
  /** A page on what may be done with the data. */
  readonly resource_policy_uri?: string
  /** The terms of service. */
  readonly resource_tos_uri?: string
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** The address of the document: the well-known path goes between the resource's host and its path. */
export function metadataUrl(resource: URL): string {
  return `${resource.origin}${WELL_KNOWN}${resource.pathname === '/' ? '' : resource.pathname}`
}

/** The document under each path that clients look for it at. */
export function metadataDocuments(resource: URL, metadata: ResourceMetadata): ReadonlyMap<string, string> {
  const text = JSON.stringify(metadata)
  const { pathname } = new URL(metadataUrl(resource))
  return new Map([WELL_KNOWN, pathname, pathname.replace(/\/$/, '')].map((path) => [path, text]))
}

/** A resource's canonical URI: absolute, without query and fragment. */
export function resourceUrl(resource: string): URL {
  const url = URL.canParse(resource) ? new URL(resource) : undefined
  const isAddress = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url !== undefined && isAddress && !/[?#@]/.test(resource)) return url
  throw new RallyError(
    'OPTION_INVALID',
    `bearer: ${JSON.stringify(resource)} is not the address of a resource, such as 'https://mcp.example.com/mcp'. ` +
      'Where tokens name their audience otherwise, give the address as resource.',
  )
}
