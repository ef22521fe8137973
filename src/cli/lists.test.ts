import { expect, test } from 'vitest'
import type { Client } from '../client/client.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { listPrompts, listResources, listTools } from './lists.ts'
import { table } from './table.ts'

/** Whose lists are these, however odd. */
function clientOf(lists: Readonly<Record<string, unknown[]>>): Client {
  const list = (name: string) => async () => {
    const entries = lists[name]
    if (entries === undefined) throw new ProtocolError(-32601, 'Method not found')
    return entries
  }
  return {
    listTools: list('tools'),
    listPrompts: list('prompts'),
    listResources: list('resources'),
    listResourceTemplates: list('templates'),
  } as unknown as Client
}

test('what a server says in its lists may be of any type, and is shown all the same', async () => {
  const tools = [
    {
      name: 'a',
      description: { not: 'text' },
      inputSchema: { properties: { b: null, c: { type: 7 } }, required: 'b' },
    },
    { name: 'd', inputSchema: { properties: [] } },
    { name: 'e', inputSchema: { properties: 'none' }, title: 'E' },
  ]
  const listing = await listTools(clientOf({ tools }))
  expect(listing.lines(Infinity)).toEqual([
    'NAME  ARGUMENTS        DESCRIPTION',
    'a     [b=any] [c=any]  {"not":"text"}',
    'd',
    'e                      E',
  ])
  const prompts = [{ name: 'p', arguments: [null, { name: 'x', required: true }, 'y'] }]
  expect((await listPrompts(clientOf({ prompts }))).lines(Infinity)[1]).toBe(
    'p     [undefined=...] x=... [undefined=...]',
  )
})

test('templates stand beside resources, and a server that knows only one of the two has the other empty', async () => {
  const resources = [{ uri: 'a:b', name: 'one', mimeType: 'text/plain' }]
  const templates = [{ uriTemplate: 'a:{x}', name: 'any' }]
  const both = await listResources(clientOf({ resources, templates }))
  expect(both.lines(Infinity).slice(1)).toEqual(['a:b    one   text/plain', 'a:{x}  any'])
  const one = await listResources(clientOf({ resources }))
  expect(one.value).toEqual({ resources, resourceTemplates: [] })
})

test('a list that fails in another way fails', async () => {
  const client = { listTools: () => Promise.reject(new ProtocolError(-32603, 'No.')) } as unknown as Client
  await expect(listTools(client)).rejects.toThrow('No.')
})

const rows = [
  ['short', 'a=string', 'What it does, at some length'],
  ['much-longer', '', 'line\nbreak \u001B[2J'],
]

test('columns line up, and the last takes what is left of the screen', () => {
  expect(table(['NAME', 'ARGUMENTS', 'DESCRIPTION'], rows, 48)).toEqual([
    'NAME         ARGUMENTS  DESCRIPTION',
    'short        a=string   What it does, at some...',
    'much-longer             line break \\x1b[2J',
  ])
})

test('nothing is cut where there is no screen', () => {
  expect(table(['NAME', 'ARGUMENTS', 'DESCRIPTION'], rows, Infinity)[1]).toMatch(/at some length$/)
})

test('a name that is too wide for its column is whole all the same', () => {
  const name = 'n'.repeat(60)
  expect(table(['NAME', 'DESCRIPTION'], [[name, 'about']], 80)[1]).toBe(`${name}  about`)
})
