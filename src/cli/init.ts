// `rally init`: writes a small project that compiles, tests itself and runs.
//
// 1. No file is ever overwritten: if one of the project's files is there, nothing is written at all.
// 2. The files are those of templates/ in the package. They are compiled with the rest of this repository.
import { existsSync, statSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { shown } from '../protocol/text.ts'
import { clean } from './clean.ts'
import type { RunContext } from './context.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted, UsageError } from './exit.ts'
import { packageFile } from './package-file.ts'
import { shellQuoted } from './server.ts'

export interface InitOptions {
  readonly schema?: string
  readonly host?: string
  readonly yes?: boolean
}

interface SchemaChoice {
  readonly label: string
  /** The file of templates/src that becomes src/app.ts. */
  readonly app: string
  readonly dependencies: Readonly<Record<string, string>>
}

interface HostChoice {
  readonly label: string
  /** The file of templates/src that starts the server. */
  readonly from: string
  readonly to: string
  readonly scripts: Readonly<Record<string, string>>
  readonly call: string
  readonly deploy: string
}

/** A project as the user wants it. */
interface Project {
  readonly folder: string
  readonly schema: SchemaChoice
  readonly host: HostChoice
}

/** The versions that our tests run with: test/package/init.test.ts compares. */
const TOOLS = { '@types/node': '^20.19.43', typescript: '^7.0.2' }
const TSX = { tsx: '^4.23.0' }

const SCHEMAS: Readonly<Record<string, SchemaChoice>> = {
  zod: { label: 'zod', app: 'app.ts', dependencies: { zod: '^4.6.7' } },
  valibot: {
    label: 'valibot',
    app: 'app.valibot.ts',
    dependencies: { '@valibot/to-json-schema': '^1.8.0', valibot: '^1.5.0' },
  },
  arktype: { label: 'arktype', app: 'app.arktype.ts', dependencies: { arktype: '^2.2.9' } },
  'json-schema': { label: 'plain JSON Schema (arguments have no types)', app: 'app.json-schema.ts', dependencies: {} },
}

const KEYS =
  'Set `RALLY_KEYS` to a secret, the same on every instance: `node -p "crypto.randomBytes(32).toString(\'base64url\')"` prints one. ' +
  'Without it, a call that waits for an answer is lost when the process ends.'

const HOSTS: Readonly<Record<string, HostChoice>> = {
  http: {
    label: 'HTTP, on Node',
    from: 'server.ts',
    to: 'server.ts',
    scripts: { dev: 'rally dev src/server.ts', start: 'node dist/server.js' },
    call: 'With `npm run dev` in another terminal:\n\n```sh\nnpx mcp-rally call http://127.0.0.1:3000/mcp order_coffee drink=espresso\n```',
    deploy: `\`npm run build && npm start\`. ${KEYS} To listen on more than this machine, pass \`host\` and \`allowedHosts\` to \`serve\`. Its other options are in docs/mounting.md of the package.`,
  },
  stdio: {
    label: 'standard streams, for a client on the same machine',
    from: 'server.stdio.ts',
    to: 'server.ts',
    scripts: { dev: 'rally dev src/server.ts', start: 'node dist/server.js' },
    call: 'After `npm run build`:\n\n```sh\nnpx mcp-rally call order_coffee drink=espresso -- node dist/server.js\n```\n\nIn the settings of a client, the command is `node` with the absolute path of `dist/server.js`. While you write, use `npx` with\n`mcp-rally dev` and the absolute path of `src/server.ts`: the client stays connected when the server restarts.',
    deploy: '`npm run build`, and the command is `node dist/server.js`.',
  },
  workers: {
    label: 'Cloudflare Workers',
    from: 'worker.ts',
    to: 'worker.ts',
    scripts: { dev: 'rally dev src/app.ts', deploy: 'npx wrangler deploy' },
    call: 'With `npm run dev` in another terminal, which serves `src/app.ts` in Node:\n\n```sh\nnpx mcp-rally call http://127.0.0.1:3000/mcp order_coffee drink=espresso\n```\n\n`npx wrangler dev` runs it as a Worker.',
    deploy: `Put the host name of your Worker into \`ALLOWED_HOSTS\` in wrangler.jsonc, then \`npx wrangler secret put RALLY_KEYS\` and \`npm run deploy\`. ${KEYS}`,
  },
}

const FOLDER = 'my-mcp-server'

/** Asks what the options do not say, writes the project, and says how to continue. */
export async function runInit(
  folder: string | undefined,
  options: InitOptions,
  { console, version }: RunContext,
): Promise<ExitCode> {
  const known = { schema: pick('--schema', SCHEMAS, options.schema), host: pick('--host', HOSTS, options.host) }
  const isComplete = folder !== undefined && known.schema !== undefined && known.host !== undefined
  if (!isComplete && options.yes !== true && !console.isInteractive)
    throw new UsageError('Nobody can be asked here. Pass --yes for the defaults, or the folder, --schema and --host.')
  const project =
    isComplete || options.yes === true
      ? { folder: folder ?? FOLDER, schema: known.schema ?? only(SCHEMAS), host: known.host ?? only(HOSTS) }
      : await askFor(folder, known, console)
  const files = await filesOf(project, version)
  await writeNew(resolve(project.folder), files)
  const place = relative('', resolve(project.folder))
  console.tell(`${Object.keys(files).length} files are in ${clean(place === '' ? '.' : place)}. Continue with:\n`)
  const steps = [...(place === '' ? [] : [`cd ${shellQuoted(place)}`]), 'npm install', 'npm test', 'npm run dev']
  console.print(steps.map((step) => `  ${step}`).join('\n'))
  return EXIT.done
}

type Console = RunContext['console']

async function askFor(
  folder: string | undefined,
  known: { schema: SchemaChoice | undefined; host: HostChoice | undefined },
  console: Console,
): Promise<Project> {
  const { Escaped, Prompts } = await import('./prompts.ts')
  const prompts = new Prompts(console)
  const choose = <T extends { readonly label: string }>(message: string, choices: Readonly<Record<string, T>>) =>
    prompts.choose(
      message,
      Object.values(choices).map((value) => ({ value, label: value.label })),
    )
  try {
    return {
      folder:
        folder ??
        (await prompts.text('Name of the folder?', {
          initial: FOLDER,
          check: (typed) => (typed.trim() === '' ? 'A folder needs a name.' : undefined),
        })),
      schema: known.schema ?? (await choose('Which schemas?', SCHEMAS)),
      host: known.host ?? (await choose('Where does it run?', HOSTS)),
    }
  } catch (error) {
    throw error instanceof Escaped ? new Interrupted() : error
  }
}

function pick<T>(option: string, choices: Readonly<Record<string, T>>, name: string | undefined): T | undefined {
  if (name === undefined) return undefined
  if (!Object.hasOwn(choices, name))
    throw new UsageError(`${option} must be one of ${Object.keys(choices).join(', ')}, got ${JSON.stringify(name)}.`)
  return choices[name]
}

/** The default: the first choice. */
function only<T>(choices: Readonly<Record<string, T>>): T {
  const [first] = Object.values(choices)
  if (first === undefined) throw new TypeError('There are no choices.')
  return first
}

/** The text of every file, by its path in the project. */
async function filesOf(project: Project, version: string): Promise<Record<string, string>> {
  const { schema, host } = project
  const name = nameOf(project.folder)
  const read = async (path: string): Promise<string> =>
    (await readFile(packageFile(join('templates', path)), 'utf8')).replaceAll('my-server', name)
  const app = await read(`src/${schema.app}`)
  const readme = await read('README.md')
  const isWorker = host === HOSTS['workers']
  return {
    'package.json': `${JSON.stringify(manifestOf(name, project, version), null, 2)}\n`,
    'tsconfig.json': await read('tsconfig.template.json'),
    // wrangler keeps secrets for this machine in .dev.vars.
    '.gitignore': `${await read('gitignore')}${isWorker ? '.dev.vars\n.wrangler/\n' : ''}`,
    'README.md': readme.replace('{{call}}', () => host.call).replace('{{deploy}}', () => host.deploy),
    'src/app.ts': isWorker ? app.replace(VERSION_LINE, `${VERSION_LINE}${ALLOWED_HOSTS}`) : app,
    'src/app.test.ts': await read('src/app.test.ts'),
    [`src/${host.to}`]: await read(`src/${host.from}`),
    ...(isWorker && { 'wrangler.jsonc': await read('wrangler.jsonc') }),
  }
}

const VERSION_LINE = "  version: '0.1.0',\n"
/** A Worker is reached by its own name. `app.fetch` serves only loopback names unless it is told. */
const ALLOWED_HOSTS = "  http: { allowedHosts: (process.env['ALLOWED_HOSTS'] ?? 'localhost,127.0.0.1').split(',') },\n"

function manifestOf(name: string, { schema, host }: Project, version: string): object {
  const runsTypeScript = (process.features as { typescript?: unknown }).typescript
  return {
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: { ...host.scripts, build: 'tsc', test: 'tsc && cd dist && node --test' },
    dependencies: { 'mcp-rally': `^${version}`, ...schema.dependencies },
    // A Node that does not run TypeScript itself needs tsx for `rally dev`.
    devDependencies: { ...TOOLS, ...(!runsTypeScript && TSX) },
    engines: { node: '>=20.19' },
  }
}

/** A name that npm allows, made of the name of the folder. */
function nameOf(folder: string): string {
  const plain = basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z\d-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return plain === '' ? FOLDER : plain.slice(0, 200)
}

async function writeNew(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const paths = Object.keys(files)
  for (const path of new Set(paths.map((each) => dirname(join(folder, each))))) checkFolder(path)
  const taken = paths.filter((path) => existsSync(join(folder, path)))
  if (taken.length > 0)
    throw new UsageError(
      `${folder} has ${taken.join(', ')} already, and nothing is overwritten. Choose another folder.`,
    )
  try {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), text, { flag: 'wx' })
    }
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException
    throw new UsageError(
      `init: ${shown(relative('', folder))} must be a folder that can be written, got ${code}. Choose another folder.`,
      { cause: error },
    )
  }
}

/** Before anything is written: what is there of the path must be a folder. */
function checkFolder(path: string): void {
  let there = path
  while (!existsSync(there) && there !== dirname(there)) there = dirname(there)
  if (existsSync(there) && !statSync(there).isDirectory())
    throw new UsageError(`init: ${shown(relative('', there))} must be a folder, got a file. Choose another name.`)
}
