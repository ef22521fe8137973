// The handshake: what a client proposes, and the session that follows from it.
import { isObject } from '../protocol/json.ts'
import type { Capability } from '../flow/question.ts'
import type { OlderRevision } from '../protocol/revisions/index.ts'
import { negotiated } from '../protocol/revisions/index.ts'
import { bitsOf, readCapabilities } from '../server/capabilities.ts'
import type { AppServices } from '../server/context.ts'
import type { RequestInfo } from '../server/request.ts'
import { invalidParams } from '../server/request.ts'
import { readExtensions } from '../server/source.ts'
import type { SessionClaims } from './session-id.ts'

/** They are sealed into the id of the session, which every request repeats. */
const MAX_EXTENSION_BYTES = 512

/** What the client proposes, as it may be had. `optedIn` are revisions beside the released ones. Throws -32602. */
export function readInitialize(params: Record<string, unknown>, optedIn: readonly string[]): Omit<SessionClaims, 'id'> {
  const { protocolVersion, capabilities, clientInfo } = params
  if (typeof protocolVersion !== 'string') throw invalidParams('protocolVersion must be a string')
  if (!isObject(capabilities)) throw invalidParams('capabilities must be an object')
  const { name, version } = isObject(clientInfo) ? clientInfo : {}
  if (typeof name !== 'string' || typeof version !== 'string') {
    throw invalidParams('clientInfo must have a name and a version')
  }
  const revision = negotiated(protocolVersion, optedIn)
  return {
    revision,
    capabilities: capabilitiesIn(revision, capabilities),
    carriesState: carriesState(capabilities),
    clientName: name,
    clientVersion: version,
    extensions: readExtensions(capabilities['extensions'], MAX_EXTENSION_BYTES),
  }
}

/** The text of the result. */
export function initializeText(
  { registry, tasks, info, instructions, apps }: AppServices,
  claims: Omit<SessionClaims, 'id'>,
  principal: string | undefined,
): string {
  const { revision } = claims
  const inApps = apps?.capabilities(infoOf(claims))
  const extensions = { ...registry.extensions, ...inApps?.extensions }
  return JSON.stringify({
    protocolVersion: revision.name,
    capabilities: {
      ...inApps,
      ...registry.capabilities(),
      ...(tasks && revision.tasks && { tasks: tasksOf(principal) }),
      ...(Object.keys(extensions).length > 0 && { extensions }),
    },
    serverInfo: revision.serverInfo(info),
    ...(instructions !== undefined && { instructions }),
  })
}

/** What a client of 2026-07-28 says in every request. */
function infoOf({
  revision,
  capabilities,
  clientName,
  clientVersion,
  extensions,
}: Omit<SessionClaims, 'id'>): RequestInfo {
  const clientInfo = { name: clientName, version: clientVersion }
  return {
    revision: revision.name,
    capabilities,
    clientInfo,
    extensions,
    logLevel: undefined,
    progressToken: undefined,
  }
}

/** SEP-1685, in whichever of these revisions. */
function carriesState({ state }: Record<string, unknown>): boolean {
  const scopes = isObject(state) ? state['scopes'] : undefined
  return Array.isArray(scopes) && scopes.includes('request')
}

/** Nobody in particular has no tasks of their own that could be listed. */
function tasksOf(principal: string | undefined): object {
  return { ...(principal !== undefined && { list: {} }), cancel: {}, requests: { tools: { call: {} } } }
}

/** What was declared and means something in this revision, with what goes without saying there. */
function capabilitiesIn({ capabilities, implied }: OlderRevision, declared: Record<string, unknown>): number {
  let bits = readCapabilities(declared)
  for (const [declaredOne, others] of Object.entries(implied)) {
    if ((bits & bitsOf([declaredOne as Capability])) !== 0) bits |= bitsOf(others as Capability[])
  }
  return bits & bitsOf(capabilities as Capability[])
}
