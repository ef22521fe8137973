// Where a request came from, for its handler: read when the handler asks, and bounded then.
import type { Caller, CallSource, ClientInfo } from '../flow/caller.ts'
import { checkedClaims } from '../flow/caller.ts'
import { isObject, isTame } from '../protocol/json.ts'
import { capabilitiesOf } from './capabilities.ts'
import type { Limits } from './limits.ts'
import { fits } from './limits.ts'
import type { RequestInfo } from './request.ts'
import { DEEPEST, invalidParams } from './request.ts'
import type { Viewer } from './visibility.ts'

const MAX_NAME_LENGTH = 64
/** The client is sealed with a flow whose handler reads it, so all its extensions together must be small. */
const MAX_EXTENSION_BYTES = 1_024

/** The parts of a request that say where it came from. */
export interface SourceRequest {
  readonly info: RequestInfo
  readonly meta: Readonly<Record<string, unknown>> | undefined
  readonly caller: Caller | undefined
  /** Default false. */
  readonly overHttp?: boolean | undefined
}

export class RequestSource implements Viewer {
  readonly #request: SourceRequest
  readonly #limits: Limits

  constructor(request: SourceRequest, limits: Limits) {
    this.#request = request
    this.#limits = limits
  }

  get caller(): Caller | undefined {
    return this.#request.caller
  }

  get checksScopes(): boolean {
    return this.#request.overHttp === true
  }

  get client(): ClientInfo {
    const { revision, capabilities, clientInfo, extensions } = this.#request.info
    const { name, version } = isObject(clientInfo) ? clientInfo : NO_MEMBERS
    return {
      name: shortened(name),
      version: shortened(version),
      revision,
      capabilities: capabilitiesOf(capabilities),
      extensions: readExtensions(extensions, MAX_EXTENSION_BYTES),
    }
  }

  get meta(): Readonly<Record<string, unknown>> {
    const { meta = NO_MEMBERS } = this.#request
    const { maxMetaBytes } = this.#limits
    if (!isTame(meta, DEEPEST)) throw invalidParams(`_meta must be nested at most ${DEEPEST} levels deep`)
    if (fits(JSON.stringify(meta), maxMetaBytes)) return meta
    throw invalidParams(`_meta must be at most ${maxMetaBytes} bytes long (limits.maxMetaBytes)`)
  }
}

/** The source as a task stores it: plain JSON, and nothing that could serve as a credential. */
export interface StoredSource {
  readonly caller?: Caller
  readonly client: ClientInfo
  readonly meta: Readonly<Record<string, unknown>>
}

export function storedSource({ caller, client, meta }: CallSource): StoredSource {
  return { ...(caller && { caller: storedCaller(caller) }), client, meta }
}

function storedCaller({ principal, scopes, claims }: Caller): Caller {
  return { principal, scopes, claims: checkedClaims(claims) }
}

const NO_MEMBERS: Readonly<Record<string, unknown>> = {}

function shortened(name: unknown): string | undefined {
  return typeof name === 'string' ? name.slice(0, MAX_NAME_LENGTH) : undefined
}

/** Without their settings if these are too large or nested too deeply. */
export function readExtensions(extensions: unknown, maxBytes: number): Record<string, object> {
  const declared = isObject(extensions) ? Object.entries(extensions).filter(isExtension) : []
  if (isTame(declared, DEEPEST) && fits(JSON.stringify(declared), maxBytes)) return Object.fromEntries(declared)
  let bytes = 0
  const named = declared.filter(([name]) => (bytes += Buffer.byteLength(JSON.stringify(name)) + 4) <= maxBytes)
  return Object.fromEntries(named.map(([name]) => [name, {}]))
}

function isExtension(entry: [string, unknown]): entry is [string, object] {
  return isObject(entry[1])
}
