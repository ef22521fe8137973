// A folder of a test's own, for the files of its stores.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'rally-stores-'))

  file(name = 'store.db'): string {
    return join(this.path, name)
  }

  remove(): void {
    rmSync(this.path, { recursive: true })
  }
}
