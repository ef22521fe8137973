// A user's browser on the page by a link, as the server sees it.
import type { Json } from './peer.ts'

export type Fetch = (request: Request) => Promise<Response>

/** The link in what the model reads. */
export function linkIn({ content }: Json): string {
  return /https?:\/\/\S+/.exec(content[0].text)?.[0] ?? ''
}

export class Visitor {
  readonly link: string
  readonly response: Response
  readonly html: string
  readonly key: string
  readonly #fetch: Fetch
  readonly #headers: Record<string, string>

  private constructor(fetch: Fetch, link: string, headers: Record<string, string>, response: Response, html: string) {
    this.#fetch = fetch
    this.#headers = headers
    this.link = link
    this.response = response
    this.html = html
    this.key = /name="key" content="([^"]*)"/.exec(html)?.[1] ?? ''
  }

  /** `headers` are those of the user, such as a cookie. */
  static async open(fetch: Fetch, link: string, headers: Record<string, string> = {}): Promise<Visitor> {
    const response = await fetch(new Request(link, { headers }))
    return new Visitor(fetch, link, headers, response, await response.text())
  }

  /** What the page sends, with what a browser adds to it. */
  async post(message: object, headers: Record<string, string> = {}): Promise<{ status: number; body: Json }> {
    const { origin } = new URL(this.link)
    const response = await this.#fetch(
      new Request(this.link, {
        method: 'POST',
        body: JSON.stringify({ key: this.key, ...message }),
        headers: { 'Content-Type': 'application/json', Origin: origin, ...this.#headers, ...headers },
      }),
    )
    return { status: response.status, body: await response.json() }
  }

  /** How the call stands. */
  async look(): Promise<Json> {
    return (await this.post({})).body
  }

  async answer({ id, tool, arguments: args, state }: Json, answers: object): Promise<Json> {
    return (await this.post({ id, tool, arguments: args, state, answers })).body
  }
}
