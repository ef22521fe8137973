// Builds dist/: declarations with tsc, code with rolldown. Each module file adds about 0.4 ms to the start in Node, so each
// entry is one file. Code that entries share is in files beside them, so that a class is the same in all entries.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { rolldown } from 'rolldown'
import { pages } from './pages.mjs'

const root = join(import.meta.dirname, '..')
const { bin, exports, dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const targets = [...Object.values(exports).map((target) => target.default ?? ''), ...Object.values(bin)]
const entries = targets.flatMap((target) => /^\.\/dist\/(.+)\.js$/.exec(target)?.[1] ?? [])

/** What differs between Node, browsers and Workers: the targets of `imports` in package.json. */
const platforms = [
  'schema/libraries/interpreted.ts',
  'client/transports/http-node.ts',
  'client/transports/platform-fetch.ts',
  'client/transports/stdio.ts',
  'client/transports/no-stdio.ts',
]

/** For a package that names this licence and has no copy of it. */
const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

const INTERPRETER = '@cfworker/json-schema'

// Built beside the old dist/: a build that fails leaves the old one in place.
const made = mkdtempSync(join(root, 'dist-'))
process.on('exit', () => rmSync(made, { recursive: true, force: true }))

const tsc = spawnSync('node', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', made], {
  cwd: root,
  stdio: ['ignore', 2, 2],
})
if (tsc.error) throw tsc.error
if (tsc.status !== 0) process.exit(tsc.status ?? 1)

const bundle = await rolldown({
  input: {
    // The process that `rally dev` starts.
    'platform/dev': join(root, 'src/dev/child.ts'),
    ...Object.fromEntries(entries.map((name) => [name, join(root, `src/${name}.ts`)])),
    ...Object.fromEntries(platforms.map((path) => [`platform/${basename(path, '.ts')}`, join(root, 'src', path)])),
  },
  plugins: [pages],
  platform: 'node',
  // The one for browsers runs everywhere, because the client does.
  resolve: { alias: { yaml: join(root, 'node_modules/yaml/browser/index.js') } },
  external: [
    /^node:/,
    // `imports` of package.json: the runtime or the bundler chooses the file.
    /^#/,
    ...Object.keys({ ...dependencies, ...peerDependencies }).map((name) => new RegExp(`^${name}(/|$)`)),
  ],
})
const { output } = await bundle.write({ dir: made, format: 'esm', chunkFileNames: 'shared/[name]-[hash].js' })
await bundle.close()

// CommonJS stays as it is written, so that Node and bundlers find its exports and what it requires.
cpSync(join(root, 'src/store/sqlite/libsql.cjs'), join(made, 'platform/libsql.cjs'))
const libraries = readFileSync(join(root, 'src/schema/libraries/node.cjs'), 'utf8')
writeFileSync(join(made, 'platform/libraries.cjs'), libraries.replace(INTERPRETER, './cfworker.cjs'))
const interpreter = await rolldown({ input: join(root, 'node_modules', INTERPRETER, 'dist/commonjs/index.js') })
await interpreter.write({ file: join(made, 'platform/cfworker.cjs'), format: 'cjs' })
await interpreter.close()

writeFileSync(join(made, 'LICENSES.txt'), licensesOf(output.flatMap(({ moduleIds = [] }) => moduleIds)))

rmSync(join(root, 'dist'), { recursive: true, force: true })
renameSync(made, join(root, 'dist'))

/** The licences of the packages that the build contains: those that only the terminal client, Workers and browsers need. */
function licensesOf(files) {
  const folders = new Set(files.flatMap((file) => /.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []))
  const texts = [...folders]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((folder) => {
      const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
      if (file === undefined && license !== 'MIT') throw new Error(`${name} has no text of its licence, ${license}.`)
      const text =
        file === undefined ? `Copyright (c) ${author}\n\n${MIT}` : readFileSync(join(folder, file), 'utf8').trim()
      return `${name} ${version} (${license})\n\n${text}\n`
    })
  return texts.join(`\n${'-'.repeat(80)}\n\n`)
}
