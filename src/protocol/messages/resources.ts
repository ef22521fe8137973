// resources/list, resources/templates/list and resources/read.
import type { Annotations, BlobResourceContents, TextResourceContents } from './content.ts'
import type { CacheHints, Icon, Meta, ResultMeta } from './meta.ts'

/** An entry in the list of resources. */
export interface Resource {
  /** The URI to read it by. */
  uri: string
  /** The name for programs. */
  name: string
  /** The name that people see. */
  title?: string
  /** What the resource is. */
  description?: string
  /** The type of its contents. */
  mimeType?: string
  /** In bytes, before any encoding. */
  size?: number
  /** Hints of the protocol: who it is for, and how important it is. */
  annotations?: Annotations
  /** Icons to show. */
  icons?: Icon[]
  /** What the server adds for programs. */
  _meta?: Meta
}

/** An entry in the list of resource templates. */
export interface ResourceTemplate {
  /** RFC 6570. */
  uriTemplate: string
  /** The name for programs. */
  name: string
  /** The name that people see. */
  title?: string
  /** What the resources are. */
  description?: string
  /** Present only if all resources of the template have the same type. */
  mimeType?: string
  /** Hints of the protocol: who they are for, and how important they are. */
  annotations?: Annotations
  /** Icons to show. */
  icons?: Icon[]
  /** What the server adds for programs. */
  _meta?: Meta
}

export interface ListResourcesResult extends CacheHints {
  resultType: 'complete'
  resources: Resource[]
  nextCursor?: string
  _meta?: ResultMeta
}

export interface ListResourceTemplatesResult extends CacheHints {
  resultType: 'complete'
  resourceTemplates: ResourceTemplate[]
  nextCursor?: string
  _meta?: ResultMeta
}

/** The contents of a resource, as the server sent them. */
export interface ReadResourceResult extends CacheHints {
  /** Says that this is the result, and not a question. */
  resultType: 'complete'
  /** The contents: a resource may have several. */
  contents: (TextResourceContents | BlobResourceContents)[]
  /** What the server adds for programs. */
  _meta?: ResultMeta
}
