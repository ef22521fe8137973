// The headers of every request to an older server over HTTP, those of the session included.
import { readHeaders } from '../transports/http.ts'
import type { HeadersOption } from '../options.ts'

const LONGEST_SESSION_ID = 8_192
const SESSION_ID = /^[\x21-\x7e]+$/

export class SessionHeaders {
  readonly #own: HeadersOption
  #sessionId: string | undefined
  #revision: string | undefined

  constructor(own: HeadersOption = {}) {
    this.#own = own
  }

  get sessionId(): string | undefined {
    return this.#sessionId
  }

  /** Every session begins without an id, and without an agreed revision. */
  forget(): void {
    this.#sessionId = undefined
    this.#revision = undefined
  }

  /** The server need not give one; then there is nothing to end either. */
  learnSession(id: string | undefined): void {
    if (id !== undefined && id.length <= LONGEST_SESSION_ID && SESSION_ID.test(id)) this.#sessionId = id
  }

  learnRevision(revision: string): void {
    this.#revision = revision
  }

  /** Names and values in turn. */
  async with(more: readonly string[]): Promise<string[]> {
    const session = this.#sessionId === undefined ? [] : ['Mcp-Session-Id', this.#sessionId]
    const revision = this.#revision === undefined ? [] : ['MCP-Protocol-Version', this.#revision]
    const own = typeof this.#own === 'function' ? await this.#own() : this.#own
    return [...more, ...readHeaders(own), ...revision, ...session]
  }
}
