// Checks of options, when an app is built. A variable of the environment is a string: 'false' must not be taken for true.
import { RallyError } from './errors.ts'
import { isObject } from './json.ts'
import { shown } from './text.ts'

/** Throws when an option is given and is neither true nor false. */
export function checkBooleans(options: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && typeof value !== 'boolean') throw wrongOption(name, 'true or false', value)
  }
}

/** Throws when a limit is not a number above 0. */
export function checkLimits(limits: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(limits)) {
    if (!isAboveZero(value)) throw wrongOption(name, 'a number above 0', value)
  }
}

/** Throws when an option is given and is not an object of further options. */
export function checkGroups(groups: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(groups)) {
    if (value !== undefined && !isObject(value)) throw wrongOption(name, 'an object of options', value)
  }
}

/** Throws when an option is given and lacks one of the functions of its type. */
export function checkFunctions(name: string, value: unknown, type: string, functions: readonly string[]): void {
  if (value === undefined || (isObject(value) && functions.every((each) => typeof value[each] === 'function'))) return
  throw wrongOption(name, `${type} with the functions ${functions.join(', ')}`, value)
}

export function isAboveZero(value: unknown): value is number {
  return typeof value === 'number' && value > 0
}

/** `what` is what the option must be. */
export function wrongOption(name: string, what: string, got: unknown, advice?: string): RallyError {
  const message = `\`${name}\` must be ${what}, got ${shown(got)}.`
  return new RallyError('OPTION_INVALID', advice === undefined ? message : `${message} ${advice}`)
}
