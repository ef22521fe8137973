// Runs `npm run fuzz` for its own tests, with a folder for what it finds.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const COMMAND = fileURLToPath(new URL('./run.mjs', import.meta.url))

export interface Ran {
  readonly code: number
  readonly printed: string
}

export class FuzzCommand {
  readonly out = mkdtempSync(join(tmpdir(), 'rally-fuzz-test-'))

  run(...args: string[]): Promise<Ran> {
    return new Promise((resolve) => {
      execFile(process.execPath, [COMMAND, '--out', this.out, ...args], (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), printed: stdout + stderr })
      })
    })
  }

  remove(): void {
    rmSync(this.out, { recursive: true, force: true })
  }
}
