// Finds files of this package beside the code: the templates, and the process of `rally dev`.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The absolute path of a file or folder of the package. The depth differs between src/ and the files of the build. */
export function packageFile(path: string): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, path))) return join(folder, path)
    if (folder === dirname(folder)) throw new Error(`${path} of mcp-rally is missing. Install the package again.`)
  }
}
