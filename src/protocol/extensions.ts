// Extensions of the protocol, as either side declares them.
import { assertJson, isObject } from './json.ts'
import { quoted, shown } from './text.ts'

/** A vendor's prefix and a name. */
const NAME = /^[A-Za-z](?:[\w-]*\.)*[\w-]+\/[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/

/** What is wrong with declared extensions; `undefined` if they are valid. */
export function extensionsProblem(extensions: unknown): string | undefined {
  if (!isObject(extensions)) return `must be an object of settings by the names of extensions, got ${shown(extensions)}`
  for (const [name, settings] of Object.entries(extensions)) {
    if (!NAME.test(name)) return `${quoted(name)} must be a prefix and a name, such as com.example/thing`
    if (!isObject(settings)) return `the settings of ${quoted(name)} must be an object, got ${shown(settings)}`
  }
  try {
    assertJson(extensions, 'The settings')
  } catch {
    return 'the settings must be JSON'
  }
  return undefined
}
