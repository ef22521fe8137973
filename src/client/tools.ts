// What is known of a server's tools from its list: the headers of their arguments, whether they may be repeated, and what
// they give.
import type { Logger } from '../protocol/logger.ts'
import type { CallToolResult, Tool } from '../protocol/messages.ts'
import type { ParamHeader } from '../schema/param-headers.ts'
import { paramHeaders } from '../schema/param-headers.ts'
import type { Validator } from '../schema/validator.ts'
import { ClientError } from './errors.ts'
import { reasonOf } from '../protocol/text.ts'
import { outputCheck } from './output.ts'

interface KnownTool {
  readonly tool: Tool
  readonly headers: readonly ParamHeader[]
  /** Why it must not be used, if so. */
  readonly problem: string | undefined
  /** Made when the first result comes; `null` where its schema cannot be used. */
  check: Validator | null | undefined
}

export class Tools {
  readonly #connection: { readonly usesParamHeaders: boolean }
  readonly #logger: Logger
  #known = new Map<string, KnownTool>()

  constructor(connection: { readonly usesParamHeaders: boolean }, logger: Logger) {
    this.#connection = connection
    this.#logger = logger
  }

  /** Learns a whole list. Gives the tools that may be used. */
  learn(tools: readonly Tool[]): Tool[] {
    this.#known = new Map(tools.map((tool) => [tool.name, this.#know(tool)]))
    return tools.filter(({ name }) => this.#known.get(name)?.problem === undefined)
  }

  forget(): void {
    this.#known.clear()
  }

  /** The arguments that a call repeats in its headers. Throws where the tool must not be called. */
  headersFor(name: string): readonly ParamHeader[] {
    const known = this.#known.get(name)
    if (known?.problem !== undefined) {
      throw new ClientError('TOOL_INVALID', `The tool "${name}" must not be called: ${known.problem}`)
    }
    return known?.headers ?? []
  }

  /** Whether the server says that it does no harm to call it again. */
  isIdempotent(name: string): boolean {
    const { readOnlyHint, idempotentHint } = this.#known.get(name)?.tool.annotations ?? {}
    return readOnlyHint === true || idempotentHint === true
  }

  /** What of a result does not fit the schema that the tool declares for it; empty where nothing is known of it. */
  misfits(name: string, { structuredContent, isError }: CallToolResult): string[] {
    const known = this.#known.get(name)
    if (known?.tool.outputSchema === undefined || isError === true) return []
    if (structuredContent === undefined) return ['it has no structuredContent, which its outputSchema promises']
    if (known.check === undefined) known.check = this.#newCheck(known.tool)
    return known.check?.(structuredContent) ?? []
  }

  #know(tool: Tool): KnownTool {
    if (!this.#connection.usesParamHeaders) return { tool, headers: [], problem: undefined, check: undefined }
    try {
      return { tool, headers: paramHeaders(tool.inputSchema, tool.name), problem: undefined, check: undefined }
    } catch (error) {
      const problem = reasonOf(error)
      this.#logger.warn('A tool is left out of the list, because its definition is not valid over HTTP.', { problem })
      return { tool, headers: [], problem, check: undefined }
    }
  }

  #newCheck({ name, outputSchema = {} }: Tool): Validator | null {
    try {
      return outputCheck(outputSchema, `The output of tool "${name}"`)
    } catch (error) {
      this.#logger.warn('The results of a tool are not checked, because its outputSchema cannot be used.', { error })
      return null
    }
  }
}
