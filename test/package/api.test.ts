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

test('every member of an exported interface, type or class has a doc comment', () => {
  const declared = new Map(
    entries.flatMap(exportsOf).flatMap(({ name, file }) => {
      const found = declarationOf(name, file)
      return found === undefined ? [] : [[`${name} in ${found.file}`, found] as const]
    }),
  )
  const members = [...declared].flatMap(([title, { text, index }]) =>
    membersOf(text.slice(index)).map(({ name, hasComment }) => ({ name: `${title}: ${name}`, hasComment })),
  )
  expect(members.length).toBeGreaterThan(700)
  const gaps = members.filter(({ hasComment }) => !hasComment)
  expect(gaps.map(({ name }) => name)).toEqual([])
})

test('every option of an exported type of options documents its default', () => {
  const options = entries.flatMap(exportsOf).filter(({ name }) => name.endsWith('Options'))
  const gaps = options.flatMap(({ name, file }) => {
    const found = declarationOf(name, file)
    if (found === undefined) return []
    return optionsWithoutDefault(found.text.slice(found.index)).map((member) => `${name} in ${found.file}: ${member}`)
  })
  expect([...new Set(gaps)]).toEqual([])
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

/** The doc comment right above a declaration. */
function commentOf(name: string, file: string): string | undefined {
  const { text, index } = declarationOf(name, file) ?? { text: '', index: 0 }
  return /\/\*\*(?:(?!\*\/)[^])*\*\/\n$/.exec(text.slice(0, index))?.[0]
}

interface Declaration {
  readonly file: string
  readonly text: string
  /** Where it begins in the text. */
  readonly index: number
}

/** In this file or in one whose exports it passes on. */
function declarationOf(name: string, file: string): Declaration | undefined {
  const text = textOf(file)
  const declared = new RegExp(
    `^export (?:abstract |async )?(?:function\\*?|class|interface|type|const) ${name}\\b`,
    'm',
  ).exec(text)
  if (declared !== null) return { file, text, index: declared.index }
  const named = exportsOf(file).filter((each) => each.name === name)
  const wholes = [...text.matchAll(/^export (?:type )?\* from '([^']+)'/gm)].map(([, from = '']) =>
    join(dirname(file), from),
  )
  for (const next of [...named.map((each) => each.file), ...wholes]) {
    const found = declarationOf(name, next)
    if (found !== undefined) return found
  }
  return undefined
}

/** The lines of a declaration's body, as the formatter writes them. A class has the comments of what it implements. */
function bodyOf(text: string): string[] {
  const [, head = '', body = ''] =
    /^export (?:abstract )?((?:class|interface) [^{]*|type [^\n]*= )\{\n([^]*?)\n\}/.exec(text) ?? []
  if (/^class .* implements /.test(head)) return []
  return body.split('\n')
}

const MEMBER = /^ {2}(?:(?:readonly|static|async|get|set|abstract) )*(\w+|\[\w+: [^\]]+\])(?:\?|<.*>)?[(:?]/

interface Member {
  readonly name: string
  readonly hasComment: boolean
}

/** Of an overload, the first one has the comment. What a class inherits and declares again is not one of them. */
function membersOf(text: string): Member[] {
  const lines = bodyOf(text)
  const found = new Map<string, Member>()
  for (const [index, line] of lines.entries()) {
    const name = MEMBER.exec(line)?.[1]
    if (name === undefined || name === 'constructor' || found.has(name)) continue
    found.set(name, { name, hasComment: lines[index - 1]?.trimEnd().endsWith('*/') ?? false })
  }
  return [...found.values()]
}

/** What may be left out has a default. */
function optionsWithoutDefault(text: string): string[] {
  const body = bodyOf(text).join('\n')
  return [...body.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\n {2}(?:readonly )?(\w+)\?[(:]/g)]
    .filter(([, comment = '']) => !/default/i.test(comment))
    .map(([, , name = '']) => name)
}

function textOf(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}
