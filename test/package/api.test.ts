// Every export of every entry has a doc comment: the API reference is made of them (`npm run api`), and so is what an editor shows.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './consumer.ts'

const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  exports: Record<string, { types?: string }>
}
const entries = Object.values(exports).flatMap(
  ({ types }) => types?.replace(/^\.\/dist\/(.*)\.d\.ts$/, 'src/$1.ts') ?? [],
)

/** What needs more than a sentence: how it is called. */
const WITH_EXAMPLE = [
  'rally',
  'Observer',
  'resolver',
  'inputRequired',
  'serve',
  'connect',
  'bearer',
  'harsh',
  'send',
  'nodeHandler',
  'otel',
  'sqlite',
  'postgres',
]

interface Export {
  readonly name: string
  readonly file: string
}

test('every export of every entry has a doc comment', () => {
  const all = entries.flatMap((entry) => exportsOf(entry).map(({ name, file }) => ({ entry, name, file })))
  expect(all.length).toBeGreaterThan(280)
  const gaps = all.filter(({ name, file }) => commentOf(name, file) === undefined)
  expect(gaps.map(({ entry, name, file }) => `${entry}: ${name} in ${file}`)).toEqual([])
})

test('what is not obvious has an example', () => {
  const all = entries.flatMap(exportsOf)
  for (const name of WITH_EXAMPLE) {
    const { file = '' } = all.find((each) => each.name === name) ?? {}
    expect([name, commentOf(name, file)]).toEqual([name, expect.stringMatching(/@example|```ts/)])
  }
})

/** The names that a file passes on, with the names that they have where they come from. */
function exportsOf(file: string): Export[] {
  return [...textOf(file).matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)].flatMap(
    ([, names = '', from = '']) =>
      names
        .replaceAll(/\/\/.*$/gm, '')
        .split(',')
        .map((name) =>
          name
            .trim()
            .replace(/^type /, '')
            .replace(/ as .*$/, ''),
        )
        .filter((name) => name !== '')
        .map((name) => ({ name, file: join(dirname(file), from) })),
  )
}

/** The doc comment right above a declaration, in this file or in one whose exports it passes on. */
function commentOf(name: string, file: string): string | undefined {
  const text = textOf(file)
  const declared = new RegExp(
    `^export (?:abstract |async )?(?:function\\*?|class|interface|type|const) ${name}\\b`,
    'm',
  ).exec(text)
  if (declared !== null) return /\/\*\*(?:(?!\*\/)[^])*\*\/\n$/.exec(text.slice(0, declared.index))?.[0]
  const named = exportsOf(file).filter((each) => each.name === name)
  const wholes = [...text.matchAll(/^export (?:type )?\* from '([^']+)'/gm)].map(([, from = '']) =>
    join(dirname(file), from),
  )
  for (const next of [...named.map((each) => each.file), ...wholes]) {
    const comment = commentOf(name, next)
    if (comment !== undefined) return comment
  }
  return undefined
}

function textOf(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}
