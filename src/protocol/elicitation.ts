// A question to the user, as a flat form or as a page to visit, and the answer to it.

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
  type: 'object'
  properties: Record<string, PrimitiveSchemaDefinition>
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

/** The form of 2025-06-18: kept where it is well-formed, and written as `oneOf` where titles are missing. */
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
