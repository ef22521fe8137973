// Servers of 2025-11-25 that refuse a call until the user has been to a page.
import type { ServerResponse } from 'node:http'
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js'
import type { ClientOptions, VisitQuestion } from 'mcp-rally/client'
import { afterEach, expect, test, vi } from 'vitest'
import type { Script } from './legacy-raw.ts'
import { closeAll, event, olderConnection, stream, text } from './legacy-raw.ts'
import { json } from './raw-server.ts'
import { textOf } from './wires.ts'

afterEach(closeAll)

type OnVisit = NonNullable<ClientOptions['onVisit']>

const page = (id: string): { mode: 'url'; elicitationId: string; url: string; message: string } => ({
  mode: 'url',
  elicitationId: id,
  url: `https://pages.example/${id}`,
  message: `Please go to ${id}.`,
})

/** Refuses the first calls, as the official servers write it, and then does what it is asked. */
function refusing(times: number, elicitations: object[] | ((time: number) => object[])): Script {
  let refused = 0
  return Object.fromEntries(
    ['tools/call', 'prompts/get', 'resources/read'].map((method) => [
      method,
      (response, { message: { id } }) => {
        refused += 1
        if (refused > times) {
          return json(response, { id, result: { ...text('Done.'), messages: [], contents: [] } })
        }
        const pages = typeof elicitations === 'function' ? elicitations(refused) : elicitations
        const { code, message, data } = new UrlElicitationRequiredError(pages as [])
        json(response, { id, error: { code, message, data } })
      },
    ]),
  ) as Script
}

const refusal = { rpcCode: -32042, data: { elicitations: [page('a')] } }

test('the user is sent to every page, and the call is made again', async () => {
  const onVisit = vi.fn<OnVisit>(() => ({ action: 'accept' }))
  const { client, server } = await olderConnection(refusing(1, [page('a'), page('b')]), { onVisit })
  expect(textOf(await client.callTool('deploy', { env: 'prod' }))).toBe('Done.')
  const shown = onVisit.mock.calls.map(([question]) => question)
  expect(shown).toEqual<VisitQuestion[]>(
    ['a', 'b'].map((key) => ({
      kind: 'visit',
      key,
      message: `Please go to ${key}.`,
      url: `https://pages.example/${key}`,
      host: 'pages.example',
      lookalike: false,
    })),
  )
  expect(onVisit.mock.calls[0]?.[1]).toMatchObject({
    call: { tool: 'deploy', arguments: { env: 'prod' } },
    server: { name: 'raw' },
  })
  const [first, second, ...others] = server.of('tools/call').map(({ message }) => message)
  expect(others).toEqual([])
  expect(second?.params).toEqual(first?.params)
  expect(second?.id).not.toBe(first?.id)
})

test('prompts and resources are refused and got to in the same way', async () => {
  const onVisit = vi.fn<OnVisit>(() => ({ action: 'accept' }))
  const { client } = await olderConnection(refusing(1, [page('a')]), { onVisit })
  expect(await client.getPrompt('brief')).toMatchObject({ messages: [] })
  const other = await olderConnection(refusing(1, [page('a')]), { onVisit })
  expect(await other.client.readResource('note://1')).toMatchObject({ contents: [] })
  expect(onVisit).toHaveBeenCalledTimes(2)
})

test.each(['decline', 'cancel'] as const)('a user who says %s leaves it at the error', async (action) => {
  const onVisit = vi.fn<OnVisit>(({ key }) => ({ action: key === 'a' ? 'accept' : action }))
  const { client, server } = await olderConnection(refusing(1, [page('a'), page('b')]), { onVisit })
  await expect(client.callTool('deploy')).rejects.toMatchObject({ rpcCode: -32042 })
  expect(onVisit).toHaveBeenCalledTimes(2)
  expect(server.of('tools/call')).toHaveLength(1)
})

test('a user who is sent to ever other pages goes three times', async () => {
  const onVisit = vi.fn<OnVisit>(() => ({ action: 'accept' }))
  const others = (time: number): object[] => [page(`p${time}`)]
  const { client } = await olderConnection(refusing(3, others), { onVisit })
  expect(textOf(await client.callTool('deploy'))).toBe('Done.')
  expect(onVisit).toHaveBeenCalledTimes(3)
  const endless = await olderConnection(refusing(Infinity, others), { onVisit })
  await expect(endless.client.callTool('deploy')).rejects.toMatchObject({
    rpcCode: -32042,
    data: { elicitations: [page('p4')] },
  })
  expect(onVisit).toHaveBeenCalledTimes(6)
  expect(endless.server.of('tools/call')).toHaveLength(4)
})

const complete = (elicitationId: unknown): string =>
  event({ method: 'notifications/elicitation/complete', params: { elicitationId } })

test('a user who is still at a page is not asked again: the server says when they have finished', async () => {
  const onVisit = vi.fn<OnVisit>(() => ({ action: 'accept' }))
  const { 'tools/call': refuse, ...rest } = refusing(Infinity, [page('a')])
  let isDone = false
  let standing: ServerResponse | undefined
  const { client, server } = await olderConnection(
    {
      ...rest,
      GET: (response) => {
        standing = response
        stream(response, ': here\n\n')
      },
      'tools/call': (response, seen, self) => {
        if (isDone) return json(response, { id: seen.message.id, result: text('Done.') })
        refuse?.(response, seen, self)
      },
    },
    { onVisit },
  )
  const calling = client.callTool('deploy')
  // Once at first, and once more because the user has agreed.
  await server.waitFor('tools/call', 2)
  // Of these, the last alone is of a page that was agreed on.
  for (const id of [7, { toString: 1 }, 'other']) standing?.write(complete(id))
  isDone = true
  standing?.write(complete('a'))
  expect(textOf(await calling)).toBe('Done.')
  expect(onVisit).toHaveBeenCalledTimes(1)
  expect(server.of('tools/call')).toHaveLength(3)
})

test('without anybody to send there, it is the error that it is', async () => {
  const { client, server } = await olderConnection(refusing(1, [page('a')]), { can: ['elicitation.url'] })
  await expect(client.callTool('deploy')).rejects.toMatchObject(refusal)
  expect(server.of('tools/call')).toHaveLength(1)
})

test.each([
  ['no page', []],
  ['what is no page', [{ ...page('a'), mode: 'form' }]],
  ['a page without a name', [{ ...page('a'), elicitationId: 7 }]],
  ['nonsense', ['a']],
])('an error that names %s is one like others', async (_what, elicitations) => {
  const onVisit = vi.fn<OnVisit>(() => ({ action: 'accept' }))
  const { client } = await olderConnection(refusing(1, elicitations as object[]), { onVisit })
  await expect(client.callTool('deploy')).rejects.toMatchObject({ rpcCode: -32042 })
  expect(onVisit).not.toHaveBeenCalled()
})

test.each([
  ['an address that nobody should open', [{ ...page('a'), url: 'javascript:alert(1)' }]],
  ['more pages than anybody would visit', Array.from({ length: 101 }, (_, i) => page(`p${i}`))],
])('a user is not bothered with %s', async (_what, elicitations) => {
  const onVisit = vi.fn<OnVisit>(() => ({ action: 'accept' }))
  const { client } = await olderConnection(refusing(1, elicitations), { onVisit })
  await expect(client.callTool('deploy')).rejects.toMatchObject({ code: 'QUESTION_INVALID' })
  expect(onVisit).not.toHaveBeenCalled()
})

test('a call that is aborted meanwhile takes the question back', async () => {
  const controller = new AbortController()
  let taken: AbortSignal | undefined
  const onVisit: OnVisit = (_question, { signal }) => {
    taken = signal
    controller.abort()
    return new Promise(() => {})
  }
  const { client } = await olderConnection(refusing(1, [page('a')]), { onVisit })
  const calling = client.callTool('deploy', {}, { signal: controller.signal })
  await expect(calling).rejects.toMatchObject({ code: 'ABORTED' })
  expect(taken?.aborted).toBe(true)
})
