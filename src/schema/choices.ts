// The options of a choice, in any of the ways to write one: an enum, a constant, a union of constants.
import type { TitledOption } from '../protocol/messages.ts'
import { type SchemaPosition, refuse, refuseNull, type SchemaObject, resolved, spend } from './references.ts'

export interface Option {
  const: string
  title?: string
}

/** The options that a schema offers, or undefined if it is not a choice. */
export function optionsOf(schema: SchemaObject, position: SchemaPosition): Option[] | undefined {
  const offered = offeredByUnion(schema, position) ?? offeredBy(schema, position)
  if (offered?.length === 0) refuse(position, 'has nothing to choose from. Give it at least one value.')
  return offered && distinct(offered)
}

/** The members of a union, with their references resolved. A union inside a union is refused, so this ends. */
export function unionOf(schema: SchemaObject, position: SchemaPosition): SchemaObject[] | undefined {
  const members = schema['anyOf'] ?? schema['oneOf']
  if (!Array.isArray(members)) return undefined
  return members.map((raw) => {
    const member = resolved(raw, position)
    if (Array.isArray(member['anyOf']) || Array.isArray(member['oneOf'])) {
      refuse(position, 'is a union inside a union. Write it as one.')
    }
    return member
  })
}

/** The options with their titles, or undefined if no option has one. */
export function titled(options: readonly Option[]): TitledOption[] | undefined {
  if (options.every((option) => option.title === undefined)) return undefined
  return options.map((option) => ({ const: option.const, title: option.title ?? option.const }))
}

function offeredByUnion(schema: SchemaObject, position: SchemaPosition): Option[] | undefined {
  const members = unionOf(schema, position)
  const lists = members?.map((member) =>
    // Inside a union, the title of a constant is the title of the option.
    'const' in member ? [toOption(member['const'], member['title'], position)] : offeredBy(member, position),
  )
  return lists?.includes(undefined) ? undefined : lists?.flatMap((list) => list ?? [])
}

function offeredBy(schema: SchemaObject, position: SchemaPosition): Option[] | undefined {
  if ('const' in schema) return [toOption(schema['const'], undefined, position)]
  const values = schema['enum']
  if (!Array.isArray(values)) return undefined
  spend(position, values.length)
  const titles: readonly unknown[] = Array.isArray(schema['enumNames']) ? schema['enumNames'] : []
  return values.map((value, index) => toOption(value, titles[index], position))
}

function distinct(options: readonly Option[]): Option[] {
  const seen = new Set<string>()
  return options.filter(({ const: value }) => {
    if (seen.has(value)) return false
    seen.add(value)
    return true
  })
}

function toOption(value: unknown, title: unknown, position: SchemaPosition): Option {
  if (value === null) refuseNull(position)
  if (typeof value === 'boolean') {
    refuse(
      position,
      `is always ${value}, but a form asks for true or false. Make it a boolean and check it in the handler.`,
    )
  }
  if (typeof value !== 'string') {
    refuse(position, `offers a ${typeof value}, but a form offers strings only. Use strings and convert the answer.`)
  }
  return typeof title === 'string' ? { const: value, title } : { const: value }
}
