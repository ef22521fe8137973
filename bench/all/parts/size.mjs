// Start-up time and installed size of packages.
import { bars } from '../plot.mjs'
import { joined, markdownTable, mebibytes, missing, nameOf, picture, rounded } from '../words.mjs'

export function startPart(start, install) {
  const sizes = Object.fromEntries(install?.results.map((each) => [each.name, each]) ?? [])
  const names = ['rally', 'official', 'v1', 'fastmcp', 'mcpUse'].filter(
    (name) => start?.milliseconds[name] !== undefined || sizes[name] !== undefined,
  )
  const group = (title, valueOf, textOf) => ({
    name: title,
    rows: names
      .filter((name) => valueOf(name) !== undefined)
      .map((name) => ({ label: nameOf(name), value: valueOf(name), text: textOf(name), isOurs: name === 'rally' })),
  })
  const groups = [
    group(
      'time to import',
      (name) => start?.milliseconds[name],
      (name) => `${rounded(start.milliseconds[name])} ms`,
    ),
    group(
      'installed',
      (name) => sizes[name]?.bytes,
      (name) => `${mebibytes(sizes[name].bytes)}, ${packagesText(sizes[name].packages)}`,
    ),
  ]
  const file = 'bench-start.svg'
  return {
    pictures: { [file]: bars({ title: 'Start-up and size', groups: groups.filter(({ rows }) => rows.length > 0) }) },
    text: joined(
      `## Start-up and size

The time that a fresh process takes to import what a server over HTTP needs, as a median, and what \`npm install\` brings into an empty
folder. Rally is installed from its packed package, official v2 with \`@modelcontextprotocol/node\`.`,
      picture(file, 'Import times and installed sizes'),
      markdownTable(
        ['package', 'import', 'installed', 'packages'],
        names.map((name) => [
          nameOf(name),
          start?.milliseconds[name] === undefined ? '' : `${rounded(start.milliseconds[name])} ms`,
          sizes[name] === undefined ? '' : mebibytes(sizes[name].bytes),
          sizes[name] === undefined ? '' : String(sizes[name].packages),
        ]),
      ),
      missing({ ...start?.failures, ...install?.failures }),
    ),
  }
}

function packagesText(count) {
  return `${count} ${count === 1 ? 'package' : 'packages'}`
}
