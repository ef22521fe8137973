// What TypeScript knows of a server, so that a client can call its tools by their names with checked arguments.

/**
 * A server, as TypeScript knows it: an app whose tools were registered in one chain, or what `rally types` writes. Pass it to
 * `connect<typeof app>()`. Each tool has an `input`, and an `output` if it has an output schema.
 */
export type ServerTypes<Tools = {}> = {
  /** For types only: no server has it. */
  readonly '~types'?: { readonly tools: Tools }
}
