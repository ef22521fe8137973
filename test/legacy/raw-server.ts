import { LegacyServer } from '../../src/legacy/server.ts'
import type { AppServices } from '../../src/server/context.ts'
import type { LegacyRequest } from '../../src/server/legacy.ts'
import type { Reply } from '../../src/server/reply.ts'
import type { Resolved } from '../../src/server/resolve.ts'
import { resolve } from '../../src/server/resolve.ts'

/** Takes messages as a host parsed them, and resolves them as the host would. */
export class RawServer extends LegacyServer {
  readonly #app: AppServices

  constructor(
    app: AppServices,
    ...rest: [ConstructorParameters<typeof LegacyServer>[1], ConstructorParameters<typeof LegacyServer>[2]?]
  ) {
    super(app, ...rest)
    this.#app = app
  }

  send(message: object, request: LegacyRequest): Promise<Reply | undefined> {
    return this.post(this.resolve(message), request)
  }

  resolve(message: object): Resolved {
    return resolve(this.#app.registry, message)
  }
}
