// Source text of a module beside the snippets: takes a call round by round, and logs what was asked and what came back.
export const TALK = `
import { send, type App } from 'mcp-rally'

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
}

interface Result {
  inputRequests?: Record<string, { params: { message: string } }>
  requestState?: string
  content?: { text: string }[]
  messages?: { content: { text: string } }[]
  contents?: { text: string }[]
}

export function talk(app: App, name: string, args: object, rounds: object[]): Promise<void> {
  return goRound(app, 'tools/call', { name, arguments: args }, rounds)
}

export async function goRound(app: App, method: string, request: object, rounds: object[]): Promise<void> {
  let requestState: string | undefined
  for (const inputResponses of rounds) {
    const params = { ...request, inputResponses, requestState, _meta }
    const response = await send(app, { jsonrpc: '2.0', id: 1, method, params })
    if (!response || !('result' in response)) throw new Error(JSON.stringify(response))
    const result = response.result as unknown as Result
    requestState = result.requestState
    const asked = Object.values(result.inputRequests ?? {}).map(({ params }) => params.message)
    const said = [...(result.content ?? []), ...(result.messages ?? []).map(({ content }) => content), ...(result.contents ?? [])]
    console.log([...asked, ...said.map(({ text }) => text)].join(' | '))
  }
}

export const accept = (content: object): object => ({ action: 'accept', content })
`
