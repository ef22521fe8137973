// What the reports of .ci/run say: `files <report>` lists the files in which a test failed; `count <folder>` names the
// tests that failed and prints how many passed.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const [what, path] = process.argv.slice(2)

const read = (file) => JSON.parse(readFileSync(file, 'utf8'))
const failedFiles = ({ testResults }) => testResults.filter(({ status }) => status === 'failed')
/** The tests that failed, and the files that failed without one. */
const failures = (report) =>
  failedFiles(report).flatMap(({ name, message, assertionResults }) => {
    const tests = assertionResults.filter(({ status }) => status === 'failed')
    return tests.length > 0 ? tests.map(({ fullName }) => `${name}: ${fullName}`) : [`${name}: ${message}`]
  })

if (what === 'files') {
  for (const { name } of failedFiles(read(path))) console.log(name)
} else {
  const first = read(join(path, 'tests.json'))
  const second = join(path, 'again.json')
  const failed = failures(existsSync(second) ? read(second) : first)
  for (const test of failed) console.log(`failed: ${test}`)
  const mended = failures(first).filter((test) => !failed.includes(test))
  for (const test of mended) console.log(`failed among the others, passed alone: ${test}`)
  const text = readFileSync(join(path, 'conformance.txt'), 'utf8')
  const [, passed, refused] = /(?:^|\n)(\d+) passed, (\d+) failed\s*$/.exec(text) ?? [undefined, 0, 1]
  console.log(
    `${first.numPassedTests + mended.length + Number(passed)} passed, ${failed.length + Number(refused)} failed`,
  )
}
