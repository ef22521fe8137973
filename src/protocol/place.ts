// Where in a schema the conversion to a form has got to, and the refusal that names the place.
import { RallyError } from './errors.ts'

export type SchemaObject = Readonly<Record<string, unknown>>

export interface Place {
  /** Whose schema it is, as messages begin. */
  where: string
  /** The whole schema, which references start from. */
  root: SchemaObject
  property?: string
}

export function refuse(place: Place, why: string): never {
  const what = place.property === undefined ? 'the form' : `property ${JSON.stringify(place.property)}`
  throw new RallyError('FORM', `${place.where}: ${what} ${why}`)
}

export function refuseNull(place: Place): never {
  const advice = 'make it optional instead (in zod .optional(), not .nullable()).'
  return refuse(place, `may be null, which a form can not answer: ${advice}`)
}

export function isSchema(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
