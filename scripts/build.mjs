// Builds dist/: declarations with tsc, code with rolldown. Each module file adds about 0.4 ms to the start in Node, so each
// entry is one file. Code that entries share is in files beside them, so that a class is the same in all entries.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { rolldown } from 'rolldown'

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
    ...Object.fromEntries(entries.map((name) => [name, join(root, `src/${name}.ts`)])),
    ...Object.fromEntries(platforms.map((path) => [`platform/${basename(path, '.ts')}`, join(root, 'src', path)])),
  },
  platform: 'node',
  external: [
    /^node:/,
    // `imports` of package.json: the runtime or the bundler chooses the file.
    /^#/,
    ...Object.keys({ ...dependencies, ...peerDependencies }).map((name) => new RegExp(`^${name}(/|$)`)),
  ],
})
await bundle.write({ dir: made, format: 'esm', chunkFileNames: 'shared/[name]-[hash].js' })
await bundle.close()
cpSync(join(root, 'src/schema/libraries/node.cjs'), join(made, 'platform/libraries.cjs'))

rmSync(join(root, 'dist'), { recursive: true, force: true })
renameSync(made, join(root, 'dist'))
