import type { OutputUnit, Schema } from '@cfworker/json-schema'
import type { Ajv, Options } from 'ajv'
import type { Draft } from '../json-schema.ts'

/** `undefined` in a build for a host that forbids code generation. */
export const ajv: ((draft: Draft) => new (options: Options) => Ajv) | undefined

export const cfworker: () => SchemaInterpreter

interface SchemaInterpreter {
  readonly Validator: new (
    schema: Record<string, unknown>,
    draft: Draft,
  ) => { validate(value: unknown): { readonly valid: boolean; readonly errors: OutputUnit[] } }
  readonly dereference: (schema: Record<string, unknown>) => Record<string, Schema | boolean>
}
