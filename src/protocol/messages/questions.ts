// The questions that a server asks: elicitation/create, sampling/createMessage and roots/list. The protocol has deprecated
// the last two; Rally supports them in full.
import type { AudioContent, ContentBlock, ImageContent, Role, TextContent } from './content.ts'
import type { JSONObject, Meta } from './meta.ts'
import type { Tool } from './tools.ts'

export interface ElicitRequest {
  method: 'elicitation/create'
  params: ElicitRequestParams
}

export type ElicitRequestParams = ElicitRequestFormParams | ElicitRequestURLParams

export interface ElicitRequestFormParams {
  mode?: 'form'
  message: string
  requestedSchema: FormSchema
}

export interface ElicitRequestURLParams {
  mode: 'url'
  message: string
  url: string
}

export interface ElicitResult {
  action: 'accept' | 'decline' | 'cancel'
  /** Only with an accepted form. */
  content?: Record<string, FormValue>
}

export type FormValue = string | number | boolean | string[]

/** The restricted JSON Schema of a form: one level of primitive properties. */
export interface FormSchema {
  $schema?: string
  /** A form is an object. */
  type: 'object'
  /** The fields, by name. */
  properties: Record<string, PrimitiveSchemaDefinition>
  /** The names of the fields that must be filled in. Default: none. */
  required?: string[]
}

export type PrimitiveSchemaDefinition = StringSchema | NumberSchema | BooleanSchema | EnumSchema

interface Labelled {
  title?: string
  description?: string
}

export interface StringSchema extends Labelled {
  type: 'string'
  minLength?: number
  maxLength?: number
  format?: StringFormat
  default?: string
}

export type StringFormat = 'email' | 'uri' | 'date' | 'date-time'

export interface NumberSchema extends Labelled {
  type: 'number' | 'integer'
  minimum?: number
  maximum?: number
  default?: number
}

export interface BooleanSchema extends Labelled {
  type: 'boolean'
  default?: boolean
}

export type EnumSchema =
  | UntitledSingleSelectEnumSchema
  | TitledSingleSelectEnumSchema
  | UntitledMultiSelectEnumSchema
  | TitledMultiSelectEnumSchema
  | LegacyTitledEnumSchema

export interface UntitledSingleSelectEnumSchema extends Labelled {
  type: 'string'
  enum: string[]
  default?: string
}

export interface TitledSingleSelectEnumSchema extends Labelled {
  type: 'string'
  oneOf: TitledOption[]
  default?: string
}

export interface UntitledMultiSelectEnumSchema extends Labelled {
  type: 'array'
  items: { type: 'string'; enum: string[] }
  minItems?: number
  maxItems?: number
  default?: string[]
}

export interface TitledMultiSelectEnumSchema extends Labelled {
  type: 'array'
  items: { anyOf: TitledOption[] }
  minItems?: number
  maxItems?: number
  default?: string[]
}

/** The spelling of 2025-06-18. Kept if it is complete, and written as `oneOf` if titles are missing. */
export interface LegacyTitledEnumSchema extends Labelled {
  type: 'string'
  enum: string[]
  enumNames?: string[]
  default?: string
}

export interface TitledOption {
  const: string
  title: string
}

export interface CreateMessageRequest {
  method: 'sampling/createMessage'
  params: CreateMessageRequestParams
}

export interface CreateMessageRequestParams {
  messages: SamplingMessage[]
  maxTokens: number
  systemPrompt?: string
  modelPreferences?: ModelPreferences
  temperature?: number
  stopSequences?: string[]
  /** Anything but `none` needs the capability `sampling.context`. */
  includeContext?: 'none' | 'thisServer' | 'allServers'
  /** Needs the capability `sampling.tools`. */
  tools?: Tool[]
  toolChoice?: ToolChoice
  metadata?: JSONObject
}

export interface CreateMessageResult extends SamplingMessage {
  model: string
  /** `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or a reason of the provider. */
  stopReason?: string
}

export interface SamplingMessage {
  role: Role
  content: SamplingMessageContentBlock | SamplingMessageContentBlock[]
  _meta?: Meta
}

export type SamplingMessageContentBlock = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent

export interface ToolUseContent {
  type: 'tool_use'
  id: string
  name: string
  input: Record<string, unknown>
  _meta?: Meta
}

export interface ToolResultContent {
  type: 'tool_result'
  toolUseId: string
  content: ContentBlock[]
  structuredContent?: unknown
  isError?: boolean
  _meta?: Meta
}

/** Each priority is a number from 0 (unimportant) to 1. */
export interface ModelPreferences {
  hints?: ModelHint[]
  costPriority?: number
  speedPriority?: number
  intelligencePriority?: number
}

export interface ModelHint {
  name?: string
}

export interface ToolChoice {
  mode?: 'auto' | 'required' | 'none'
}

export interface ListRootsRequest {
  method: 'roots/list'
  params?: { _meta?: Meta }
}

export interface ListRootsResult {
  roots: Root[]
}

/** A folder that the client tells the server about. */
export interface Root {
  /** A `file:` URI. */
  uri: string
  /** The name that people see. */
  name?: string
  /** What the client adds for programs. */
  _meta?: Meta
}
