// What the demo prints once it listens: where, the two rounds of a call to paste into a terminal, and how to see a task.
import { randomBytes } from 'node:crypto'

export interface Standing {
  /** Whether other processes can have the keys of this one. */
  readonly isShared: boolean
  /** Whether tasks outlive this process. */
  readonly isKept: boolean
}

export function welcome(url: string, { isShared, isKept }: Standing): string {
  return `
  Rally is listening on ${url}
  Tools: deploy, update_work_item, trip, summarize, long_sum, provision_vm

  1. Begin a call. What comes back is a question, and a requestState that holds the call so far:

  ${curl(url, 1, '')} | tee ${QUESTION}

  2. Answer it. The state goes back with the answer, and the call goes on from where it was:

  ${curl(url, 2, ANSWER)}

  ${isShared ? SHARED : alone()}

  A task goes on by itself once it is confirmed, and asks in the middle:

  npx mcp-rally call ${url} provision_vm name=web

  ${isKept ? KEPT : FORGOTTEN}
`
}

/** Where the first command leaves what came back, for the second one. */
const QUESTION = '"${TMPDIR:-/tmp}/rally-question.json"'

const SHARED = `In between you may kill this process. Any other one that has the same RALLY_KEYS takes the answer: put its port into
  the second command.`

const KEPT = `While it works, end this process with kill -9 ${process.pid} and start it again as before: the task goes on from
  its last step.`

const FORGOTTEN = 'It ends with this process. Without --store memory it would not.'

function alone(): string {
  const start = `RALLY_KEYS=${randomBytes(32).toString('base64url')} npm start -- --port`
  return `Nothing is kept here in between but a key that was made at start-up. To see a call begin in one process and end in
  another, start two that share a key, each in a terminal of its own:

  ${start} 3001
  ${start} 3002`
}

/** The state is put in as it came, so that nobody has to copy it. */
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
