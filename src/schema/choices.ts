// The strings that a schema lets one choose from, however it spells them: an enum, a constant, a union of constants.
import type { TitledOption } from '../protocol/messages.ts'
import { type Place, refuse, refuseNull, type SchemaObject, resolved } from './references.ts'

export interface Option {
  const: string
  title?: string
}

/** The choice that a schema offers, or undefined where it offers none. */
export function optionsOf(schema: SchemaObject, place: Place): Option[] | undefined {
  const offered = offeredByUnion(schema, place) ?? offeredBy(schema, place)
  if (offered?.length === 0) refuse(place, 'has nothing to choose from: give it at least one value.')
  return offered && distinct(offered)
}

/** The members of a union, read through their references. A union of unions is refused, so that this ends. */
export function unionOf(schema: SchemaObject, place: Place): SchemaObject[] | undefined {
  const members = schema['anyOf'] ?? schema['oneOf']
  if (!Array.isArray(members)) return undefined
  return members.map((raw) => {
    const member = resolved(raw, place)
    if (Array.isArray(member['anyOf']) || Array.isArray(member['oneOf'])) {
      refuse(place, 'is a union inside a union: write it as one.')
    }
    return member
  })
}

/** The options with their titles, where any of them has one. */
export function titled(options: readonly Option[]): TitledOption[] | undefined {
  if (options.every((option) => option.title === undefined)) return undefined
  return options.map((option) => ({ const: option.const, title: option.title ?? option.const }))
}

function offeredByUnion(schema: SchemaObject, place: Place): Option[] | undefined {
  const members = unionOf(schema, place)
  const lists = members?.map((member) =>
    // The title of a constant in a union is that of the option.
    'const' in member ? [toOption(member['const'], member['title'], place)] : offeredBy(member, place),
  )
  return lists?.includes(undefined) ? undefined : lists?.flatMap((list) => list ?? [])
}

function offeredBy(schema: SchemaObject, place: Place): Option[] | undefined {
  if ('const' in schema) return [toOption(schema['const'], undefined, place)]
  const values = schema['enum']
  if (!Array.isArray(values)) return undefined
  const titles: readonly unknown[] = Array.isArray(schema['enumNames']) ? schema['enumNames'] : []
  return values.map((value, index) => toOption(value, titles[index], place))
}

function distinct(options: readonly Option[]): Option[] {
  const seen = new Set<string>()
  return options.filter(({ const: value }) => {
    if (seen.has(value)) return false
    seen.add(value)
    return true
  })
}

function toOption(value: unknown, title: unknown, place: Place): Option {
  if (value === null) refuseNull(place)
  if (typeof value === 'boolean') {
    refuse(
      place,
      `is always ${value}, and a form asks for true or false: make it a boolean and check it in the handler.`,
    )
  }
  if (typeof value !== 'string') {
    refuse(place, `offers a ${typeof value}, and a form offers strings: use strings and convert the answer.`)
  }
  return typeof title === 'string' ? { const: value, title } : { const: value }
}
