// The text that the demo prints when it listens: its URL, two rounds of a call to paste into a terminal, and a task.
import { randomBytes } from 'node:crypto'

export interface WelcomeOptions {
  /** True if other processes can have the same keys. */
  readonly isShared: boolean
  /** True if tasks survive this process. */
  readonly isKept: boolean
}

export function welcome(url: string, { isShared, isKept }: WelcomeOptions): string {
  return `
  Rally is listening on ${url}
  Tools: deploy, update_work_item, trip, summarize, long_sum, provision_vm

  1. Begin a call. The response has a question, and a requestState that contains the call so far:

  ${curl(url, 1, '')} | tee ${QUESTION}

  2. Answer the question. The state is sent with the answer, and the call continues:

  ${curl(url, 2, ANSWER)}

  ${isShared ? SHARED : alone()}

  A task continues in the background after you confirm it, and asks again in the middle:

  npx mcp-rally call ${url} provision_vm name=web

  ${isKept ? KEPT : FORGOTTEN}
`
}

/** The first command writes the response here, for the second one. */
const QUESTION = '"${TMPDIR:-/tmp}/rally-question.json"'

const SHARED = `Between the two you may kill this process. Any process with the same RALLY_KEYS accepts the answer: put its port into
  the second command.`

const KEPT = `While it works, kill this process with kill -9 ${process.pid} and start it again: the task resumes after its last step.`

const FORGOTTEN = 'The task ends with this process, because of --store memory.'

function alone(): string {
  const start = `RALLY_KEYS=${randomBytes(32).toString('base64url')} npm start -- --port`
  return `Between the two this process keeps nothing but a key that it made at start. To see a call begin in one process and end
  in another, start two processes with the same key, each in its own terminal:

  ${start} 3001
  ${start} 3002`
}

/** Inserts the state from the first response, so that you do not have to copy it. */
const ANSWER = `,
      "inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}},
      '"$(grep -o '"requestState":"[^"]*"' ${QUESTION})"'`

function curl(url: string, id: number, more: string): string {
  return `curl -s ${url} -w '\\n' -H 'Content-Type: application/json' \\
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \\
    -H 'Mcp-Method: tools/call' -H 'Mcp-Name: deploy' \\
    -d '{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"deploy","arguments":{"env":"staging"},
      "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
      "io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}${more}}}'`
}
