// Content blocks: text, images, audio and resources.
import type { Icon, Meta } from './meta.ts'

export type Role = 'user' | 'assistant'

export interface Annotations {
  audience?: Role[]
  /** From 0 (optional) to 1 (required). */
  priority?: number
  /** ISO 8601. */
  lastModified?: string
}

export interface TextContent {
  type: 'text'
  text: string
  annotations?: Annotations
  _meta?: Meta
}

export interface ImageContent {
  type: 'image'
  /** Base64. */
  data: string
  mimeType: string
  annotations?: Annotations
  _meta?: Meta
}

export interface AudioContent {
  type: 'audio'
  /** Base64. */
  data: string
  mimeType: string
  annotations?: Annotations
  _meta?: Meta
}

/** A link to a resource that the client may read. */
export interface ResourceLink {
  type: 'resource_link'
  uri: string
  name: string
  title?: string
  description?: string
  mimeType?: string
  /** In bytes, before any encoding. */
  size?: number
  icons?: Icon[]
  annotations?: Annotations
  _meta?: Meta
}

/** A resource with its contents. */
export interface EmbeddedResource {
  type: 'resource'
  resource: TextResourceContents | BlobResourceContents
  annotations?: Annotations
  _meta?: Meta
}

export interface TextResourceContents {
  uri: string
  mimeType?: string
  text: string
  _meta?: Meta
}

export interface BlobResourceContents {
  uri: string
  mimeType?: string
  /** Base64. */
  blob: string
  _meta?: Meta
}

/** A part of a result or a message: text, an image, audio, a link, or a resource. */
export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
