// Fails unless the tag, package.json and CHANGELOG.md agree on the version, and the changelog has a date for it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const [tag = ''] = process.argv.slice(2)
const heading = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').match(/^## (.+)$/m)?.[1] ?? ''

const problems = []
if (tag !== `v${version}`) problems.push(`The tag must be v${version}, as in package.json, got ${JSON.stringify(tag)}.`)
if (!new RegExp(`^${version.replaceAll('.', String.raw`\.`)}, \\d{4}-\\d\\d-\\d\\d$`).test(heading))
  problems.push(`The first heading of CHANGELOG.md must be "${version}, YYYY-MM-DD", got "${heading}".`)
if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exit(1)
}
