// resources/list, resources/templates/list and resources/read.
import type { Annotations, BlobResourceContents, TextResourceContents } from './content.ts'
import type { CacheHints, Icon, Meta, ResultMeta } from './meta.ts'

/** An entry in the list of resources. */
export interface Resource {
  uri: string
  name: string
  title?: string
  description?: string
  mimeType?: string
  /** In bytes, before any encoding. */
  size?: number
  annotations?: Annotations
  icons?: Icon[]
  _meta?: Meta
}

/** An entry in the list of resource templates. */
export interface ResourceTemplate {
  /** RFC 6570. */
  uriTemplate: string
  name: string
  title?: string
  description?: string
  /** Present only if all resources of the template have the same type. */
  mimeType?: string
  annotations?: Annotations
  icons?: Icon[]
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
  resultType: 'complete'
  contents: (TextResourceContents | BlobResourceContents)[]
  _meta?: ResultMeta
}
