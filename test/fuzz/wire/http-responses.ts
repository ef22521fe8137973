// Reads what a server sent over one connection, strictly, and holds each response against the protocol.
import { parsed } from '../harness/json.ts'
import type { Watch } from '../harness/target.ts'
import { clipped } from '../harness/target.ts'
import type { Asked } from './check.ts'
import { checkSent } from './check.ts'
import { fateOf } from './messages.ts'
import { readEvents } from './sse.ts'

/** `text` has a character for each byte. The last response may be cut off: its reader has gone. Returns how each went. */
export function readResponses(watch: Watch, text: string, asked: Asked): string[] {
  const fates: string[] = []
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\r\n\r\n', at)
    if (end === -1) break
    const head = text.slice(at, end)
    const [, status = ''] = /^HTTP\/1\.1 (\d{3}) [^\r\n]*(?:\r\n[^\r\n:]+: [^\r\n]*)*$/.exec(head) ?? []
    if (status === '') {
      watch.report('invalid', 'Not the head of a response', clipped(head))
      break
    }
    at = end + 4
    if (status.startsWith('1')) continue
    const { body, next } = bodyAt(text, at, head)
    at = next
    fates.push(
      `${status} ${checkBody(watch, Number(status), /content-type: ([^\r\n;]*)/i.exec(head)?.[1] ?? '', body, asked)}`,
    )
  }
  return fates
}

function bodyAt(text: string, at: number, head: string): { body: string; next: number } {
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(head) ?? []
  if (length !== undefined) return { body: text.slice(at, at + Number(length)), next: at + Number(length) }
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) return { body: '', next: at }
  let body = ''
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at)
    const size = lineEnd === -1 ? 0 : Number.parseInt(text.slice(at, lineEnd), 16)
    if (!(size > 0)) return { body, next: lineEnd === -1 ? text.length : lineEnd + 4 }
    body += text.slice(lineEnd + 2, lineEnd + 2 + size)
    at = lineEnd + 2 + size + 2
  }
}

/** Returns a word for it. `body` has a character for each byte. */
export function checkBody(watch: Watch, status: number, type: string, body: string, asked: Asked): string {
  const text = Buffer.from(body, 'latin1').toString()
  watch.checkLeaks(text, asked.sent)
  if (status >= 500 && status !== 503 && status !== 501 && status !== 505)
    watch.report('internal', `Status ${status}`, clipped(text))
  // What an older session says is the matter of another target.
  const revision = /initialize|session/i.test(asked.sent) ? 'any' : undefined
  if (type === 'application/json')
    return fateOf(parsed(text) === undefined ? undefined : checkSent(watch, text, asked, revision))
  if (type !== 'text/event-stream') return type
  const messages = readEvents(text).flatMap(({ data }) => (data ? [checkSent(watch, data, asked, revision)] : []))
  return messages.map(fateOf).join('+')
}
