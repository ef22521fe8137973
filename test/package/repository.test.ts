// What surrounds the code: the workflows do what CI does, the changelog knows the version, and the map has every room.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from './consumer.ts'

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

interface Workflow {
  jobs: Record<string, { strategy?: { matrix: { include: { command: string; flows?: number; needs?: string }[] } } }>
}

test('the workflow runs the commands of .ci/run, in its order, with the programs that they need', () => {
  const ci = read('.ci/run')
  const commands = [...ci.matchAll(/^(?:\w+=\w+ )?check (?:\w+ )?(npm .*?)(?: --)?$/gm)]
  const { jobs } = parse(read('.github/workflows/ci.yml')) as Workflow
  const steps = jobs['run']?.strategy?.matrix.include ?? []
  expect(steps.map(({ command }) => command)).toEqual(commands.map(([, command]) => command))
  const programs = [...ci.matchAll(/^needs (\S+)$/gm)].map(([, name]) => name)
  expect(steps.flatMap(({ needs = [] }) => needs)).toEqual(programs)
  // A program that is there is not installed, in both.
  for (const file of ['.ci/run', '.github/workflows/ci.yml'])
    expect(read(file)).toMatch(/command -v .*\n?.*(?:return|\|\|)/)
  expect(ci).toContain(`RALLY_DRILL_FLOWS=${steps.find(({ flows }) => flows)?.flows} check npm run drill -- fleet`)
})

test('workflows and forms are YAML, and use scripts that exist', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  for (const folder of ['.github/workflows', '.github/ISSUE_TEMPLATE']) {
    for (const name of readdirSync(join(ROOT, folder))) {
      const text = read(`${folder}/${name}`)
      expect(parse(text)).toBeTypeOf('object')
      for (const [, script = ''] of text.matchAll(/npm run ([\w:]+)/g)) expect(scripts).toHaveProperty([script])
      for (const [, file = ''] of text.matchAll(/node (scripts\/\S+)/g)) expect(existsSync(join(ROOT, file))).toBe(true)
    }
  }
})

test('the changelog begins with the version of the package, and a release needs its date and its tag', async () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  expect(/^## (\S+?),/m.exec(read('CHANGELOG.md'))?.[1]).toBe(version)
  const release = promisify(execFile)(process.execPath, [join(ROOT, 'scripts/release.mjs'), 'v9.9.9'])
  await expect(release).rejects.toMatchObject({ stderr: expect.stringContaining(`The tag must be v${version}`) })
})

test('every folder of src/ is on the map for contributors', () => {
  const rooms = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).flatMap((each) =>
    each.isDirectory() ? [`src/${each.name}/`] : [],
  )
  expect(rooms.filter((room) => !read('CONTRIBUTING.md').includes(`\`${room}`))).toEqual([])
  const tried = [...read('CONTRIBUTING.md').matchAll(/`npx vitest run ([^`]+)`/g)].flatMap(([, paths = '']) =>
    paths.split(' '),
  )
  expect(tried.filter((path) => !existsSync(join(ROOT, path)) && !existsSync(join(ROOT, `${path}.test.ts`)))).toEqual(
    [],
  )
})
