// docs/tried.md is written from the tables of what the tests run, and from the versions that they install.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { clients, gateways, servers } from '../peers/table.ts'
import { CHROMIUM, frameworks, runtimes } from '../runtimes/table.ts'
import { ROOT } from './consumer.ts'

interface Manifest {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** The exact version of a package that a folder's package.json names. */
function versionsOf(folder: string): (name: string) => string {
  const manifest = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Manifest
  const versions = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies }
  return (name) => {
    const version = /^(?:npm:.*@)?(\d[\w.-]*)$/.exec(versions[name] ?? '')?.[1]
    if (version === undefined) throw new Error(`${folder}/package.json has no exact version of ${name}.`)
    return version
  }
}

const ASKED = 'a call, a question'
const NOT_ASKED = 'a call; it cannot ask its user, and says so'

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0), title.length),
  )
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

test('docs/tried.md is up to date, or `npx vitest run test/package/tried.test.ts -u` makes it so', async () => {
  const own = versionsOf('.')
  const inRuntimes = versionsOf('test/runtimes')
  const inPeers = versionsOf('test/peers')
  const text = `# What was tried

A command runs each row, with the version that it names. CI runs these commands before a change lands, except \`npm run peers\`,
which installs 700 MB and runs by hand. \`npm test\` fails when this page is stale.

## Runtimes

\`npm run runtimes\` runs one contract of a host and one of a client: plain calls, questions in 2026-07-28 and in a 2025-era session,
subscriptions. Workers are part of \`npm test\`. In Chromium the client runs in a page, against servers on another origin.

${table(
  ['runtime', 'version', 'what runs'],
  [
    ...runtimes.map(({ name, package: of }) => [name, inRuntimes(of), 'host, client, SQLite store']),
    ['Cloudflare Workers (workerd)', own('workerd'), 'host, client'],
    ['Chromium of Debian', `${CHROMIUM} or later`, 'client'],
  ],
)}

## Frameworks

\`npm run runtimes\` runs the contract of a host in each, mounted as [frameworks](frameworks.md) shows it.

${table(
  ['framework', 'version', 'with'],
  frameworks.map(({ title, packages: [framework, ...others] }) => [
    title,
    inRuntimes(framework),
    others.map((name) => `\`${name}\` ${inRuntimes(name)}`).join(', '),
  ]),
)}

## Bundlers

\`npm test\` bundles the client for a browser with each, and a server with esbuild.

${table(
  ['bundler', 'version'],
  ['esbuild', 'vite', 'webpack'].map((name) => [name, own(name)]),
)}

## Clients of others, with our server

\`npm run peers\`, over HTTP and over stdio.

${table(
  ['client', 'package', 'version', 'what runs'],
  clients.map(({ name, package: of, asks }) => [name, `\`${of}\``, inPeers(of), asks ? ASKED : NOT_ASKED]),
)}

## Gateways of others, between our client and our server

\`npm run peers\`. supergateway in front of a stdio server carries questions too. In front of an HTTP server it carries plain
calls in a 2025-era revision.

${table(
  ['gateway', 'version'],
  gateways.map(({ name, package: of }) => [name, inPeers(of)]),
)}

## Servers of others, with our client and our terminal client

\`npm run peers\`. server-everything also asks the user and the model through our client.

${table(
  ['server', 'package', 'version', 'over'],
  servers.map(({ name, package: of, wires }) => [name, `\`${of}\``, inPeers(of), wires.join(', ')]),
)}

The official SDK has [a page of its own](matrix.md).
`
  await expect(text).toMatchFileSnapshot(join(ROOT, 'docs/tried.md'))
})
