// What the server's list says about its tools: which arguments go into headers, whether a call may be repeated, and the
// schema of the result.
import type { Logger } from '../protocol/logger.ts'
import { isObject, sizeUpTo } from '../protocol/json.ts'
import type { CallToolResult, Tool } from '../protocol/messages.ts'
import { reasonOf, shown } from '../protocol/text.ts'
import type { ParamHeader } from '../schema/param-headers.ts'
import { paramHeaders } from '../schema/param-headers.ts'
import type { Validator } from '../schema/validator.ts'
import { ClientError } from './errors.ts'
import { compileOutputCheck } from './output.ts'

interface KnownTool {
  readonly tool: Tool
  readonly headers: readonly ParamHeader[]
  /** Why the tool must not be called. */
  readonly problem: string | undefined
  /** Compiled for the first result. `null` if the schema cannot be used. */
  check: Validator | null | undefined
}

/** Properties and items of all input schemas of a list, which are searched for `x-mcp-header`. */
const MAX_SCANNED = 200_000

export class Tools {
  readonly #connection: { readonly usesParamHeaders: boolean }
  readonly #logger: Logger
  #known = new Map<string, KnownTool>()

  constructor(connection: { readonly usesParamHeaders: boolean }, logger: Logger) {
    this.#connection = connection
    this.#logger = logger
  }

  /** Replaces what is known. Returns the tools that may be called. */
  learn(tools: readonly Tool[]): Tool[] {
    const scan = { left: MAX_SCANNED }
    this.#known = new Map(tools.map((tool) => [tool.name, this.#know(tool, scan)]))
    return tools.filter(({ name }) => this.#known.get(name)?.problem === undefined)
  }

  forget(): void {
    this.#known.clear()
  }

  /** The arguments that a call repeats in headers. Throws `TOOL_INVALID` if the tool must not be called. */
  headersFor(name: string): readonly ParamHeader[] {
    const known = this.#known.get(name)
    if (known?.problem !== undefined) {
      throw new ClientError(
        'TOOL_INVALID',
        `Tool ${shown(name)} must not be called, because its definition is not valid: ${known.problem}`,
      )
    }
    return known?.headers ?? []
  }

  /** True if the server declares that a repeated call has no further effect. */
  isIdempotent(name: string): boolean {
    const { readOnlyHint, idempotentHint } = this.#known.get(name)?.tool.annotations ?? {}
    return readOnlyHint === true || idempotentHint === true
  }

  knows(name: string): boolean {
    return this.#known.has(name)
  }

  /** True if the results of the tool have structured content. */
  hasOutput(name: string): boolean {
    return this.#known.get(name)?.tool.outputSchema !== undefined
  }

  /** Whether a legacy server makes a task of a call. Undefined if it does not, or nothing is known of the tool. */
  taskSupport(name: string): 'required' | 'optional' | undefined {
    const { execution } = (this.#known.get(name)?.tool ?? {}) as { execution?: unknown }
    const support = isObject(execution) ? execution['taskSupport'] : undefined
    return support === 'required' || support === 'optional' ? support : undefined
  }

  /** Lists what does not match the tool's output schema. Empty if no schema is known. */
  outputProblems(name: string, { structuredContent, isError }: CallToolResult): string[] {
    const known = this.#known.get(name)
    if (known?.tool.outputSchema === undefined || isError === true) return []
    if (structuredContent === undefined) return ['structuredContent is missing']
    if (known.check === undefined) known.check = this.#newCheck(known.tool)
    return known.check?.(structuredContent) ?? []
  }

  #know(tool: Tool, scan: { left: number }): KnownTool {
    if (!this.#connection.usesParamHeaders) return { tool, headers: [], problem: undefined, check: undefined }
    try {
      scan.left -= sizeUpTo(tool.inputSchema, scan.left)
      if (scan.left < 0) throw tooLargeToScan()
      return { tool, headers: paramHeaders(tool.inputSchema, tool.name), problem: undefined, check: undefined }
    } catch (error) {
      const problem = reasonOf(error)
      this.#logger.warn('A tool is left out of the list, because its x-mcp-header is not valid.', { problem })
      return { tool, headers: [], problem, check: undefined }
    }
  }

  #newCheck({ name, outputSchema = {} }: Tool): Validator | null {
    try {
      return compileOutputCheck(outputSchema, `The output of tool "${name}"`)
    } catch (error) {
      this.#logger.warn('The results of a tool are not checked, because its outputSchema cannot be compiled.', {
        tool: name,
        error,
      })
      return null
    }
  }
}

function tooLargeToScan(): Error {
  return new Error(`The input schemas of the list have more than ${MAX_SCANNED} properties and items.`)
}
