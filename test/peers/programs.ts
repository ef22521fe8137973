import { join } from 'node:path'

/** A file of a package that is installed here. */
export function programOf(name: string, file: string): string {
  return join(import.meta.dirname, 'node_modules', name, file)
}
