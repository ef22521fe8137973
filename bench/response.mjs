// Reads HTTP/1.1 responses off a keep-alive connection with as little work per response as can be: bodies of known
// length and chunked ones. Text is latin1 throughout, so that one character is one byte.

const headEnd = '\r\n\r\n'
const lengthHeader = /\r\ncontent-length: *(\d+)/i
const chunkedHeader = /\r\ntransfer-encoding: *chunked/i

// Takes what has arrived so far; gives undefined while the response is not complete. An event stream needs no reading of
// its own: its end is the end of the body, and its data lines hold the same JSON text.
export function readResponse(text) {
  const bodyStart = text.indexOf(headEnd) + headEnd.length
  if (bodyStart < headEnd.length) return undefined
  const head = text.slice(0, bodyStart)
  const status = Number(head.slice(9, 12))
  const length = lengthHeader.exec(head)
  if (length) {
    const end = bodyStart + Number(length[1])
    return text.length < end ? undefined : { status, body: text.slice(bodyStart, end), end }
  }
  if (!chunkedHeader.test(head)) throw new Error(`A response has neither content-length nor chunks:\n${head}`)
  const chunks = readChunks(text, bodyStart)
  return chunks && { status, ...chunks }
}

function readChunks(text, start) {
  let body = ''
  let at = start
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(text.slice(at, lineEnd), 16)
    if (Number.isNaN(size)) throw new Error(`A chunk has no size: ${text.slice(at, lineEnd)}`)
    const end = lineEnd + 2 + size + 2
    if (text.length < end) return undefined
    if (!text.startsWith('\r\n', end - 2)) throw new Error(`A chunk does not end where it says: ${text.slice(at, end)}`)
    if (size === 0) return { body, end }
    body += text.slice(lineEnd + 2, end - 2)
    at = end
  }
}
