// The validators of Workers and browsers, which forbid code generation: the interpreter alone.
import { dereference, Validator } from '@cfworker/json-schema'
import type * as libraries from '#json-schema-libraries'

export const ajv: typeof libraries.ajv = undefined
export const cfworker: typeof libraries.cfworker = () => ({ dereference, Validator })
