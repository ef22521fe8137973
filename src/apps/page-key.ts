// The key of a page: what tells the page from the model, which can call the page's tool wherever a host does not keep it from it.
// It is in the page and nowhere else, opens for the principal that read the page, and under any key of the ring.
import { randomBytes } from 'node:crypto'
import type { PayloadCodec } from '../seal/envelope.ts'
import { bindTo } from '../seal/envelope.ts'
import { InvalidState } from '../seal/errors.ts'
import type { Seal, SealFor } from '../seal/seal.ts'

/** Hosts keep pages with the conversation that shows them. An older page has to be loaded again. */
const PAGE_MS = 30 * 86_400_000

const codec: PayloadCodec<undefined, []> = {
  purpose: 'appPage',
  name: 'key of a page',
  tests: [],
  write: () => ({ id: randomBytes(12).toString('base64url'), fields: [], text: '' }),
  read: () => undefined,
}

export class PageKeys {
  readonly #seal: SealFor<undefined>

  constructor(seal: Seal) {
    this.#seal = seal.for(codec, { ttl: PAGE_MS, maxAge: PAGE_MS, maxBytes: 4_096 })
  }

  /** `call` is the id of the call, if the page is for one call alone. */
  async mint(principal: string | undefined, call = ''): Promise<string> {
    return this.#seal.mint(undefined, bindTo('appPage', call, principal))
  }

  async opens(key: unknown, principal: string | undefined, call = ''): Promise<boolean> {
    try {
      await this.#seal.open(key, bindTo('appPage', call, principal))
      return true
    } catch (error) {
      if (error instanceof InvalidState) return false
      throw error
    }
  }
}
