import type { Rally } from 'mcp-rally'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorOf, request, resultOf } from '../wire/messages.ts'
import { ask, makeApp, read, responseOf } from './messages.ts'
import type { Wire } from './wires.ts'
import { hosts } from './wires.ts'

const show = (by: string) => (variables: object) => `${by} ${JSON.stringify(variables)}`

function filesApp(): Rally {
  const { app } = makeApp()
  app.resourceTemplate('file://{name}', { name: 'first' }, show('first'))
  app.resourceTemplate('file://{+path}', { name: 'second' }, show('second'))
  app.resourceTemplate('search://all{?q,tag*}', { name: 'search' }, show('search'))
  // Registered last, and wins all the same.
  app.resource('file://fixed', { name: 'fixed' }, () => 'fixed')
  return app
}

describe.each(hosts)('templates over $name', ({ isHttp, open }) => {
  let wire: Wire

  beforeAll(async () => {
    wire = await open(filesApp())
  })
  afterAll(() => wire.close())

  const textOf = async (uri: string): Promise<unknown> => {
    const { contents } = resultOf(await ask(wire, read(uri))) as { contents: { uri: string; text: string }[] }
    expect(contents.map((content) => content.uri)).toEqual([uri])
    return contents[0]?.text
  }

  test.each([
    ['file://fixed', 'fixed'],
    ['file://other', 'first {"name":"other"}'],
    ['file://a/b', 'second {"path":"a/b"}'],
    ['file://caf%c3%a9%2F', 'first {"name":"caf\u00e9/"}'],
    ['file://__proto__', 'first {"name":"__proto__"}'],
    ['search://all', 'search {}'],
    ['search://all?tag=a&q=b%20c&tag=d', 'search {"tag":["a","d"],"q":"b c"}'],
  ])('read %s by what fits first, a fixed resource before any template', async (uri, text) => {
    expect(await textOf(uri)).toBe(text)
  })

  test('read the longest URI that there may be', async () => {
    const uri = `file://${'a'.repeat(8_192 - 7)}`
    expect(await textOf(uri)).toBe(`first {"name":"${'a'.repeat(8_192 - 7)}"}`)
  })

  test.each([
    ['malformed percent-encoding', 'file://%zz'],
    ['bytes that are no text', 'file://%FF'],
    ['half an escape', 'file://a%2'],
    ['NUL', 'file://a\0b'],
    ['a newline', 'file://a\nb'],
    ['text beyond ASCII', 'file://caf\u00e9'],
    ['nothing in it', 'file://'],
    ['another scheme', 'javascript:alert(1)'],
    ['no text at all', ''],
  ])('find nothing for a URI with %s, and say which', async (_what, uri) => {
    const { response, status } = await wire.open(read(uri)).answer()
    expect(errorOf(response)).toEqual({ code: -32602, message: `Resource not found: ${uri}`, data: { uri } })
    expect(status).toBe(isHttp ? 200 : undefined)
  })

  test('refuse a URI that is too long, and one that no header can repeat', async () => {
    expect(errorOf(await ask(wire, read(`file://${'a'.repeat(8_186)}`)))).toEqual({
      code: -32602,
      message: 'uri must be at most 8192 bytes long (limits.maxUriBytes)',
    })
    const surrogate = errorOf(await ask(wire, read('file://\ud800')))
    expect(surrogate.code).toBe(isHttp ? -32020 : -32602)
  })
})

test('a hundred templates and a hostile URI of 8 KiB come to an end', async () => {
  const { app } = makeApp()
  for (let i = 0; i < 100; i += 1) {
    app.resourceTemplate(`a://{+a}-{+b}-{+c}-{d}${i}!`, { name: `t${i}` }, () => 'Hi')
  }
  const uri = `a://${'-'.repeat(8_000)}`
  expect(errorOf(await responseOf(app, read(uri)))).toMatchObject({ code: -32602, data: { uri } })
})

test('whether a reader finds anything is its own to say, and its error is told as any other', async () => {
  const { app } = makeApp()
  app.resourceTemplate('a://{id}', { name: 'a' }, ({ id }) => {
    if (id === 'broken') throw new Error('The disk is full.')
    return id === '1' ? 'one' : undefined
  })
  expect(resultOf(await responseOf(app, read('a://1')))['contents']).toEqual([{ uri: 'a://1', text: 'one' }])
  expect(errorOf(await responseOf(app, read('a://2')))).toMatchObject({ code: -32602, data: { uri: 'a://2' } })
  expect(errorOf(await responseOf(app, read('a://broken')))).toEqual({ code: -32603, message: 'The disk is full.' })
})

test('what a request says beside its URI is not for a reader', async () => {
  const { app } = makeApp()
  app.resourceTemplate('a://{id}', { name: 'a' }, (variables) => JSON.stringify(variables))
  const message = request('resources/read', { uri: 'a://1', arguments: { id: '2', more: 'x' } })
  expect(resultOf(await responseOf(app, message))['contents']).toEqual([{ uri: 'a://1', text: '{"id":"1"}' }])
})
