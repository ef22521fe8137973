import { describe, expect, test } from 'vitest'
import { INVALID_PARAMS, ProtocolError } from '../protocol/errors.ts'
import { Catalog } from './catalog.ts'
import type { Guarded } from './visibility.ts'

interface Thing extends Guarded {
  listing: string
}

interface Page {
  listings: string[]
  nextCursor?: string
}

function catalogOf(pageSize: number, ...keys: string[]): Catalog<Thing> {
  const catalog = new Catalog<Thing>('thing', pageSize)
  for (const key of keys) catalog.add(key, thing(key))
  return catalog
}

function thing(listing: string): Thing {
  return { listing, scopes: undefined, visible: undefined }
}

function pageOf(catalog: Catalog<Thing>, cursor: unknown): Page {
  return JSON.parse(`{"listings":${catalog.pageText(cursor)}}`) as Page
}

function walk(catalog: Catalog<Thing>): string[][] {
  const pages: string[][] = []
  for (let cursor: string | undefined; ;) {
    const { listings, nextCursor } = pageOf(catalog, cursor)
    pages.push(listings)
    if (nextCursor === undefined) return pages
    cursor = nextCursor
  }
}

describe('the pages of a catalog', () => {
  test('hold everything once, in the order of registration', () => {
    const keys = ['zebra', 'ant', 'Bee', '10', '9']
    expect(walk(catalogOf(2, ...keys))).toEqual([['zebra', 'ant'], ['Bee', '10'], ['9']])
    expect(walk(catalogOf(5, ...keys))).toEqual([keys])
    expect(walk(catalogOf(1, ...keys))).toEqual(keys.map((key) => [key]))
    expect(walk(catalogOf(5))).toEqual([[]])
  })

  test('go on behind the last entry, whatever was registered meanwhile', () => {
    const catalog = catalogOf(1, 'a', 'b')
    const { nextCursor } = pageOf(catalog, undefined)
    catalog.add('c', thing('c'))
    expect(pageOf(catalog, nextCursor).listings).toEqual(['b'])
    expect(walk(catalog)).toEqual([['a'], ['b'], ['c']])
  })

  test('show what was registered since they were last looked at', () => {
    const catalog = catalogOf(5, 'a')
    expect(pageOf(catalog, undefined)).toEqual({ listings: ['a'] })
    catalog.add('b', thing('b'))
    expect(pageOf(catalog, undefined)).toEqual({ listings: ['a', 'b'] })
  })

  test('have cursors for keys of any text', () => {
    const keys = ['"', '\\', '\n', '\u00e9', '\u{1f600}', 'a/b?c=d', '__proto__', 'x'.repeat(2_000)]
    expect(walk(catalogOf(1, ...keys)).flat()).toEqual(keys)
  })

  test('begin anew without a cursor, and null counts as none', () => {
    const catalog = catalogOf(1, 'a', 'b')
    expect(pageOf(catalog, null)).toEqual(pageOf(catalog, undefined))
  })

  test.each([
    ['another text', 'b'],
    ['that of another entry', 'Yg'],
    ['padded', 'YQ=='],
    ['with a space', ' YQ'],
    ['empty', ''],
    ['long', 'x'.repeat(10_000)],
    ['a number', 0],
    ['no number', NaN],
    ['a boolean', false],
    ['an object', {}],
    ['a list', ['YQ']],
  ])('refuse a cursor that this server did not give: %s', (_what, cursor) => {
    const catalog = catalogOf(1, 'a', 'c')
    expect(() => catalog.pageText(cursor)).toThrow(ProtocolError)
    expect(() => catalog.pageText(cursor)).toThrow(expect.objectContaining({ rpcCode: INVALID_PARAMS }))
  })
})

test('a key is taken once only, and the error says of what', () => {
  const catalog = catalogOf(1, 'a')
  expect(() => catalog.add('a', thing(''))).toThrow('The thing "a" is registered already. Use another name or URI.')
  expect(catalog.size).toBe(1)
})
