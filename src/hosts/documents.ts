// Documents that anybody may read, whoever is calling: how an HTTP host answers a request for one.

export interface DocumentAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string | undefined
}

const OPEN = { 'Access-Control-Allow-Origin': '*' }

/** Clients send their protocol version along, which makes a browser ask first. */
const PREFLIGHT = { ...OPEN, 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': '*' }

/** Any page may read it and it is the same for all, so there is neither Host nor Origin to check. */
export function answerDocument(method: string | undefined, text: string): DocumentAnswer {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return {
        status: 200,
        headers: { 'Content-Type': 'application/json', ...OPEN },
        text: method === 'GET' ? text : undefined,
      }
    case 'OPTIONS':
      return { status: 204, headers: PREFLIGHT, text: undefined }
    default:
      return { status: 405, headers: { Allow: 'GET, HEAD, OPTIONS' }, text: undefined }
  }
}

/** What comes before the query in a request's target. */
export function pathOf(target: string): string {
  const end = target.indexOf('?')
  return end === -1 ? target : target.slice(0, end)
}
