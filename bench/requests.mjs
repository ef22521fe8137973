// The scenarios as text on the wire: what a connection sends, and what the response must contain.

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
}

// Ids keep one width, so that the content-length of a request does not depend on them.
export const firstId = 100_000_000

const accepted = { confirm: { action: 'accept', content: { confirm: true } } }

// A scenario is a cycle of rounds; a round with `state` sends back the requestState of the round before.
const scenarios = {
  plain: [{ tool: 'add', params: { arguments: { a: 2, b: 3 } }, marker: '"text":"5"' }],
  sealed: [
    { tool: 'deploy', params: { arguments: { env: 'prod' } }, marker: '"resultType":"input_required"' },
    {
      tool: 'deploy',
      params: { arguments: { env: 'prod' }, inputResponses: accepted },
      state: true,
      marker: '"text":"Deployed to prod"',
    },
  ],
  // Those of the overload run.
  compute: [{ tool: 'compute', params: { arguments: {} }, marker: '"text":"' }],
  crunch: [{ tool: 'crunch', params: { arguments: {} }, marker: '"text":"' }],
  wait: [{ tool: 'wait', params: { arguments: {} }, marker: '"text":"waited"' }],
}

export const scenarioNames = ['plain', 'sealed']
const stateName = '"requestState":"'

// What a peer speaks: 2026-07-28, or a revision of 2025, which has no `_meta` in requests and fewer headers.
const dialects = {
  '2026-07-28': {
    members: { _meta: meta },
    headers: (tool) => ['mcp-protocol-version: 2026-07-28', 'mcp-method: tools/call', `mcp-name: ${tool}`],
  },
  '2025-11-25': { members: {}, headers: () => ['mcp-protocol-version: 2025-11-25'] },
}

// Everything that does not change from one request to the next is joined here, once per run.
export function roundsOf(scenario, { port, authorization, dialect = '2026-07-28' }) {
  const rounds = scenarios[scenario]
  const { members, headers } = dialects[dialect]
  return rounds.map(({ tool, params, state = false, marker }, index) => {
    const opening = '{"jsonrpc":"2.0","id":'
    const middle = `,"method":"tools/call","params":${JSON.stringify({ name: tool, ...params, ...members }).slice(0, -1)}`
    const beforeState = state ? `${middle},"requestState":"` : middle
    const closing = state ? '"}}' : '}}'
    const fixedLength = Buffer.byteLength(opening + firstId + beforeState + closing)
    return {
      marker,
      fixedLength,
      givesState: rounds[index + 1]?.state === true,
      textOf: requestText(headOf(headers(tool), port, authorization), opening, beforeState, closing, fixedLength),
    }
  })
}

function headOf(headers, port, authorization) {
  return [
    'POST /mcp HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    ...headers,
    ...(authorization ? [`authorization: ${authorization}`] : []),
    'content-length: ',
  ].join('\r\n')
}

function requestText(head, opening, beforeState, closing, fixedLength) {
  return (id, state) => `${head}${fixedLength + state.length}\r\n\r\n${opening}${id}${beforeState}${state}${closing}`
}

/** The requestState of a response. */
export function stateOf(body) {
  const start = body.indexOf(stateName) + stateName.length
  const end = body.indexOf('"', start)
  if (start < stateName.length || end === -1) throw new Error(`no requestState in ${body}`)
  const state = body.slice(start, end)
  if (state.includes('\\')) throw new Error(`the requestState has escapes, which are not read here: ${state}`)
  return state
}
