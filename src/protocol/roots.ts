// The folders that the client lets a server see. Deprecated by the protocol, and supported in full.
import type { Meta } from './meta.ts'

export interface ListRootsRequest {
  method: 'roots/list'
  params?: { _meta?: Meta }
}

export interface ListRootsResult {
  roots: Root[]
}

export interface Root {
  /** A `file:` URI. */
  uri: string
  name?: string
  _meta?: Meta
}
