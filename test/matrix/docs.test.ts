// docs/matrix.md is written from the matrix itself.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { renderLeftOut, renderMatrix } from './render.ts'

const DOCS = fileURLToPath(new URL('../../docs/matrix.md', import.meta.url))
const PACKAGE = fileURLToPath(new URL('../../package.json', import.meta.url))

test('docs/matrix.md is up to date, or `npm run matrix -- --update` makes it so', async () => {
  const { devDependencies } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { devDependencies: Record<string, string> }
  const at = (name: string): string =>
    `\`@modelcontextprotocol/${name}\` ${devDependencies[`@modelcontextprotocol/${name}`]}`
  const text = `# The matrix

Old and new clients against old and new servers. \`npm run matrix\` tries every cell, with real processes and real sockets, and
\`npm run matrix -- --update\` writes this page. In each cell a tool is called. What its user is shown is compared with what the
tool asks, and the result with what the user answers.

All that our server serves here comes from one file of handlers, \`test/matrix/handlers.mjs\`, with no branch on the revision in it,
and our client has one set of answerers. The official peers are ${at('server')},
${at('client')} and ${at('sdk')}.

The newest revision of a pair is negotiated; the older ones are asked for. Several at once means that
nothing is answered before all of the questions are there; where our client carries the calls of our server in an older revision
(SEP-1685), they come one at a time instead. A decline and a cancel are the user's word on a question; an abort is
the caller's end of the whole call: the question is taken back, and the next call is served.

${renderMatrix(() => 'yes')}

## Left out

${renderLeftOut()}
`
  await expect(text).toMatchFileSnapshot(DOCS)
})
