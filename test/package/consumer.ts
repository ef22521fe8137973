// A project that has the packed package installed, as its users have it: compiled by tsc, run by Node.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface Ran {
  stdout: string
  stderr: string
}

/** Packages that are installed in `node_modules` of the folder. */
interface Foreign {
  readonly folder: string
  readonly names: readonly string[]
}

const execute = promisify(execFile)

/** Without scripts: the package is built already, and a build now would pull it from under the other tests. */
export function npmPack(...args: readonly string[]): Promise<Ran> {
  return execute('npm', ['pack', '--ignore-scripts', '--json', ...args], { cwd: ROOT })
}

export class Consumer {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  /** Installs the package, its dependencies, and what else is named: of ours, or of what is installed in another folder. */
  static async install(others: readonly string[], foreign: Foreign = { folder: ROOT, names: [] }): Promise<Consumer> {
    const folder = await mkdtemp(join(tmpdir(), 'rally-consumer-'))
    const installed = join(folder, 'node_modules/mcp-rally')
    await mkdir(installed, { recursive: true })
    const { stdout } = await npmPack('--pack-destination', folder)
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
    await execute('tar', ['-xzf', join(folder, filename), '-C', installed, '--strip-components=1'])
    const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>
    }
    const own = { folder: ROOT, names: [...Object.keys(dependencies), ...others] }
    for (const { folder: from, names } of [own, foreign]) {
      for (const name of names) {
        const link = join(folder, 'node_modules', name)
        await mkdir(dirname(link), { recursive: true })
        await symlink(join(from, 'node_modules', name), link)
      }
    }
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    return new Consumer(folder)
  }

  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(this.folder, name)), { recursive: true })
      await writeFile(join(this.folder, name), text)
    }
  }

  /** Compiles the files to JavaScript beside them, and gives what the compiler complained about. */
  async compile(files: readonly string[], compilerOptions: object = {}): Promise<string> {
    return this.#tsc(files, compilerOptions)
  }

  /** The same, with what the compiler says about its work. */
  async measure(files: readonly string[], compilerOptions: object): Promise<string> {
    return this.#tsc(files, { ...compilerOptions, skipLibCheck: true }, '--extendedDiagnostics')
  }

  async #tsc(files: readonly string[], compilerOptions: object, ...flags: readonly string[]): Promise<string> {
    const config = {
      compilerOptions: {
        module: 'NodeNext',
        target: 'ES2023',
        lib: ['ES2023'],
        types: ['node'],
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        skipLibCheck: false,
        ...compilerOptions,
      },
      files,
    }
    await this.write({ 'tsconfig.json': JSON.stringify(config) })
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    try {
      const { stdout } = await execute(process.execPath, [tsc, '--pretty', 'false', ...flags], { cwd: this.folder })
      return stdout
    } catch (error) {
      return (error as Ran).stdout
    }
  }

  /** Runs a file with Node, in a process of its own. */
  run(file: string, ...nodeOptions: readonly string[]): Promise<Ran> {
    return execute(process.execPath, [...nodeOptions, join(this.folder, file)], {
      cwd: this.folder,
      env: { PATH: process.env['PATH'] },
      timeout: 40_000,
    })
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true })
  }
}
