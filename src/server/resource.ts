// Registers resources and resource templates, and turns what their readers return into contents.
import { isObject } from '../protocol/json.ts'
import type { Asks, Io } from '../flow/io.ts'
import type { Requirements, ResolvedNeeds } from '../flow/resolver.ts'
import { INTERNAL_ERROR, ProtocolError, RallyError } from '../protocol/errors.ts'
import type {
  Annotations,
  BlobResourceContents,
  CacheHints,
  Icon,
  Meta,
  Resource,
  ResourceTemplate,
  TextResourceContents,
} from '../protocol/messages.ts'
import { shown } from '../protocol/text.ts'
import type { CompletionSource, Completers } from './completion.ts'
import { prepareCompleters } from './completion.ts'
import { cacheHints, withServerMeta } from './content.ts'
import type { AnotherRound, Handled, HandlerOptions, ReturnWithNeeds } from './handler.ts'
import { pick, prepareHandler } from './handler.ts'
import { invalidParams } from './request.ts'
import type { Target, RoundRequest } from './round.ts'
import { tellFailure } from './failure.ts'
import type { TemplateVariables } from './uri-template.ts'
import { UriTemplate } from './uri-template.ts'
import type { VisibilityTest } from './visibility.ts'

interface ReadOptions<A extends Asks, N> extends HandlerOptions<A, N>, Partial<CacheHints> {
  /** A short name for programs, such as a file name. */
  name: string
  title?: string
  description?: string
  mimeType?: string
  annotations?: Annotations
  icons?: Icon[]
  _meta?: Meta
}

/** Options of `app.resource()`. */
export interface ResourceOptions<A extends Asks, N> extends ReadOptions<A, N> {
  /** The size in bytes. Default: unknown. */
  size?: number
}

/** Options of `app.resourceTemplate()`. */
export interface TemplateOptions<A extends Asks, N> extends ReadOptions<A, N> {
  /** Suggestions for variables, by name. Default: none. */
  complete?: Readonly<Record<string, CompletionSource>>
}

/** A text, bytes, or whole contents. `undefined` means that the resource does not exist. */
export type ReadReturn =
  | string
  | Uint8Array
  | ResourceContent
  | ResourceContent[]
  | ReadResult
  | undefined
  | AnotherRound

/** Default: the URI of the request, and the MIME type of the resource. */
export type ResourceContent = Loose<TextResourceContents> | Loose<BlobResourceContents>
type Loose<T extends { uri: string }> = Omit<T, 'uri'> & { uri?: string }

/** The contents of a resource, where a string or bytes are not enough. */
export interface ReadResult extends Partial<CacheHints> {
  /** The contents: a resource may have several. */
  contents: ResourceContent[]
  /** Sent with the result. Default: none. */
  _meta?: Meta
}

/** Reads a resource. Like a tool, it may ask and take several rounds. */
export type ResourceReader<A extends Asks, N> = (
  io: Io<A>,
  needs: ResolvedNeeds<N>,
) => ReturnWithNeeds<ReadReturn, N> | Promise<ReturnWithNeeds<ReadReturn, N>>

/** Reads a resource of a template. It gets the variables of the URI. */
export type TemplateReader<T extends string, A extends Asks, N> = (
  variables: TemplateVariables<T>,
  io: Io<A>,
  needs: ResolvedNeeds<N>,
) => ReturnWithNeeds<ReadReturn, N> | Promise<ReturnWithNeeds<ReadReturn, N>>

export interface RegisteredResource extends Handled {
  readonly mimeType: string | undefined
  readonly hints: Partial<CacheHints>
  /** Its entry in `resources/list` or `resources/templates/list`. */
  readonly listing: Resource | ResourceTemplate
}

export interface RegisteredTemplate extends RegisteredResource {
  readonly template: UriTemplate
  readonly arguments: readonly string[]
  readonly completers: Completers
}

const LISTED = ['title', 'description', 'mimeType', 'annotations', 'icons', '_meta'] as const

export function registerResource<A extends Asks, N extends Requirements>(
  uri: string,
  options: ResourceOptions<A, N>,
  read: ResourceReader<A, N>,
): RegisteredResource {
  if (!URL.canParse(uri)) {
    throw new RallyError(
      'RESOURCE_INVALID',
      `${JSON.stringify(uri)} is not a URI. Write app.resource('config://app', options, read).`,
    )
  }
  const listing: Resource = { uri, name: nameOf(uri, options), ...pick(options, [...LISTED, 'size']) }
  const where = `Resource ${uri}`
  if (typeof read !== 'function') throw new RallyError('RESOURCE_INVALID', `${where}: the reader must be a function.`)
  // A fixed URI has no variables.
  const reader = (_variables: unknown, io: Io<A>, needs: ResolvedNeeds<N>): unknown => read(io, needs)
  return {
    ...prepareHandler(where, options, reader),
    mimeType: options.mimeType,
    hints: readHints(uri, options),
    listing,
  }
}

export function registerTemplate<T extends string, A extends Asks, N extends Requirements<TemplateVariables<T>>>(
  uriTemplate: T,
  options: TemplateOptions<A, N>,
  read: TemplateReader<T, A, N>,
): RegisteredTemplate {
  const template = new UriTemplate(uriTemplate)
  const listing: ResourceTemplate = { uriTemplate, name: nameOf(uriTemplate, options), ...pick(options, LISTED) }
  const where = `Resource template ${uriTemplate}`
  return {
    ...prepareHandler(where, options, read),
    mimeType: options.mimeType,
    hints: readHints(uriTemplate, options),
    template,
    arguments: template.names,
    completers: prepareCompleters(options.complete, template.names, where),
    listing,
  }
}

function nameOf(uri: string, options: { name: string } | undefined): string {
  if (typeof options?.name === 'string' && options.name !== '') return options.name
  throw new RallyError('RESOURCE_INVALID', `Resource ${uri}: \`name\` must be a string that is not empty.`)
}

function readHints(
  uri: string,
  { ttlMs, cacheScope }: { [K in keyof CacheHints]?: CacheHints[K] | undefined },
): Partial<CacheHints> {
  if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs >= 0)) {
    throw new RallyError(
      'RESOURCE_INVALID',
      `Resource ${uri}: \`ttlMs\` must be a whole number of 0 or more, got ${ttlMs}.`,
    )
  }
  if (cacheScope !== undefined && cacheScope !== 'public' && cacheScope !== 'private') {
    throw new RallyError(
      'RESOURCE_INVALID',
      `Resource ${uri}: \`cacheScope\` must be 'public' or 'private', got ${shown(cacheScope)}.`,
    )
  }
  return { ...(ttlMs !== undefined && { ttlMs }), ...(cacheScope !== undefined && { cacheScope }) }
}

/** A resource as one request reads it. */
export interface ResourceTarget extends Target {
  readonly scopes: readonly string[] | undefined
  readonly visible: VisibilityTest | undefined
}

export function resourceTarget(uri: string, resource: RegisteredResource, variables: unknown): ResourceTarget {
  return {
    method: 'resources/read',
    target: uri,
    scopes: resource.scopes,
    visible: resource.visible,
    version: resource.version,
    timeoutMs: resource.timeoutMs,
    forms: resource.forms,
    run: (_args, io) => resource.run(variables, io),
    resultText: (value, { serverMeta }, request) => {
      if (value === undefined || value === null) throw invalidParams(`Resource not found: ${uri}`, { uri })
      return readText(toResult(value), uri, resource, request, serverMeta)
    },
    failureText: tellFailure,
  }
}

function readText(
  { contents, ttlMs, cacheScope, _meta }: ReadResult,
  uri: string,
  { mimeType, hints }: RegisteredResource,
  request: RoundRequest,
  serverMeta: string,
): string {
  const whole = contents.map((each) => ({ uri, ...(mimeType !== undefined && { mimeType }), ...each }))
  const said = { ...cacheHints(0, request.caller === undefined), ...hints, ...readHints(uri, { ttlMs, cacheScope }) }
  // Contents that depend on answers or a state are for this one request, and not to be cached.
  const given = request.answers === undefined && request.state === undefined ? said : NO_CACHE
  return `{"resultType":"complete","contents":${JSON.stringify(whole)},"ttlMs":${given.ttlMs},"cacheScope":"${given.cacheScope}","_meta":${withServerMeta(_meta, serverMeta)}}`
}

const NO_CACHE: CacheHints = { ttlMs: 0, cacheScope: 'private' }

function toResult(value: {}): ReadResult {
  if (typeof value === 'string') return { contents: [{ text: value }] }
  if (value instanceof Uint8Array) return { contents: [{ blob: Buffer.from(value).toString('base64') }] }
  if (isContents(value)) return { contents: [value] }
  if (Array.isArray(value) && value.every(isContents)) return { contents: value }
  if (isObject(value) && Array.isArray(value['contents']) && value['contents'].every(isContents)) {
    return value as unknown as ReadResult
  }
  throw new ProtocolError(
    INTERNAL_ERROR,
    'The resource returned no contents. Return a text, bytes, { text } or { blob }, a list of these, or { contents }.',
  )
}

function isContents(value: unknown): value is ResourceContent {
  return isObject(value) && (typeof value['text'] === 'string' || typeof value['blob'] === 'string')
}
