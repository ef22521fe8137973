// The part of oidc-provider that the tests use. The package has no types of its own.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export class Provider {
    constructor(
      issuer: string,
      configuration: { findAccount: (context: unknown, id: string) => object; [option: string]: unknown },
    )
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
  }
}
