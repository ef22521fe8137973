import { expect, test } from 'vitest'
import { curl, startDemo } from './demo-process.ts'

const RALLY_KEYS = 'a secret that the two of them share'

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
}

interface Asked {
  result: { inputRequests: Record<string, { params: { message: string } }>; requestState: string }
}

/** Begins a deployment and gives what is needed to go on with it, and the version it is about. */
async function begin(url: string) {
  const params = { name: 'deploy', arguments: { env: 'staging' }, _meta: meta }
  const reply = await curl(url, { method: 'tools/call', params })
  expect(reply).toMatchObject({
    result: { resultType: 'input_required', inputRequests: { confirm: { method: 'elicitation/create' } } },
  })
  const { inputRequests, requestState } = (reply as Asked).result
  const [, sha = ''] = /^Deploy (\w+) to staging\?$/.exec(inputRequests['confirm']?.params.message ?? '') ?? []
  expect(sha).toHaveLength(7)
  const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } }
  return { sha, answer: { method: 'tools/call', params: { ...params, inputResponses, requestState } } }
}

test('a flow begun in one process is finished in another after the first was killed', async () => {
  const [first, second] = await Promise.all([startDemo({ RALLY_KEYS }), startDemo({ RALLY_KEYS })])
  const { sha, answer } = await begin(first.url)
  expect(await first.child.kill()).toEqual({ code: null, signal: 'SIGKILL' })
  const NOBODY_LISTENS = 'curl ended with 7'
  await expect(curl(first.url, answer)).rejects.toThrow(NOBODY_LISTENS)

  // The plan comes out of the journal: another process knows the version that the first one made up.
  expect(await curl(second.url, answer)).toMatchObject({
    result: { resultType: 'complete', content: [{ type: 'text', text: `Deployed ${sha} to staging` }] },
  })
})

test('a flow of three rounds is finished by a third process, each one before it having been killed', async () => {
  const params = { name: 'update_work_item', arguments: { id: 7, state: 'Resolved' }, _meta: meta }
  const call = (url: string, more: object) => curl(url, { method: 'tools/call', params: { ...params, ...more } })
  const answers = [
    {},
    { resolution: { action: 'accept', content: { resolution: 'Duplicate' } } },
    { original: { action: 'accept', content: { duplicateOf: 3 } } },
  ]
  const demos = await Promise.all(answers.map(() => startDemo({ RALLY_KEYS })))
  let reply: unknown
  let requestState: string | undefined
  for (const [round, { child, url }] of demos.entries()) {
    reply = await call(url, { inputResponses: answers[round], requestState })
    requestState = (reply as Asked).result.requestState
    await child.kill()
  }
  expect(reply).toMatchObject({
    result: { structuredContent: { id: 7, state: 'Resolved', resolution: 'Duplicate', duplicateOf: 3 } },
  })
})

test('a rotated key still opens what was begun under it, and a dropped one does not', async () => {
  const [old, fresh] = ['the secret of last month and still in use', 'the secret of this month and of the next']
  const [before, during, after] = await Promise.all(
    [old, `${fresh}, ${old}`, fresh].map((keys) => startDemo({ RALLY_KEYS: keys })),
  )
  if (!before || !during || !after) throw new Error('Three were started.')
  const { answer, sha } = await begin(before.url)
  await before.child.kill()
  expect(await curl(during.url, answer)).toMatchObject({
    result: { content: [{ text: `Deployed ${sha} to staging` }] },
  })
  expect(await curl(after.url, answer)).toMatchObject({
    error: { code: -32602, message: 'Invalid or expired requestState' },
  })
})

test('without RALLY_KEYS each process has a key of its own, and says so when it matters', async () => {
  const [first, second] = await Promise.all([startDemo(), startDemo()])
  const { answer, sha } = await begin(first.url)
  expect(await curl(second.url, answer)).toMatchObject({ error: { code: -32602 } })
  expect(await curl(first.url, answer)).toMatchObject({ result: { content: [{ text: `Deployed ${sha} to staging` }] } })
  await first.child.complained.match(/under a key made at start-up/)
})
