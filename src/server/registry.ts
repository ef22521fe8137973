// Everything that is registered on an app, and what it tells clients about it.
import { isObject } from '../protocol/json.ts'
import type { DiscoverResult, ServerCapabilities } from '../protocol/messages.ts'
import { TASKS_EXTENSION } from '../protocol/revisions/2026-07-28.ts'
import { Catalog } from './catalog.ts'
import { cacheHints } from './content.ts'
import type { CompletionTarget } from './completion.ts'
import type { RegisteredPrompt } from './prompt.ts'
import { SUPPORTED_REVISIONS } from './request.ts'
import type { RegisteredResource, RegisteredTemplate } from './resource.ts'
import type { RegisteredTool } from './tool.ts'

export interface ListOptions {
  /** How long clients may keep a list. */
  readonly ttlMs: number
  /** Entries of one page. */
  readonly pageSize: number
}

/** Longest URI. Longer ones are not worth matching against templates. */
export const LONGEST_URI = 8_192

export class Registry {
  readonly tools: Catalog<RegisteredTool>
  readonly prompts: Catalog<RegisteredPrompt>
  readonly resources: Catalog<RegisteredResource>
  readonly templates: Catalog<RegisteredTemplate>
  readonly #listTtlMs: number

  constructor({ ttlMs, pageSize }: ListOptions) {
    this.#listTtlMs = ttlMs
    this.tools = new Catalog('tool', pageSize)
    this.prompts = new Catalog('prompt', pageSize)
    this.resources = new Catalog('resource', pageSize)
    this.templates = new Catalog('resource template', pageSize)
  }

  get hasResources(): boolean {
    return this.resources.size > 0 || this.templates.size > 0
  }

  get hasCompletions(): boolean {
    return [...this.prompts.values(), ...this.templates.values()].some(({ completers }) => completers.size > 0)
  }

  /** The fixed resource of this URI, or the first template that it fits. */
  findResource(uri: string): { resource: RegisteredResource; variables: unknown } | undefined {
    if (uri.length > LONGEST_URI) return undefined
    const fixed = this.resources.get(uri)
    if (fixed !== undefined) return { resource: fixed, variables: {} }
    for (const resource of this.templates.values()) {
      const variables = resource.template.match(uri)
      if (variables !== undefined) return { resource, variables }
    }
    return undefined
  }

  completionTarget(kind: 'ref/prompt' | 'ref/resource', name: string): CompletionTarget | undefined {
    if (kind === 'ref/prompt') return this.prompts.get(name)
    return this.templates.get(name) ?? (this.resources.get(name) && NOTHING_TO_COMPLETE)
  }

  /** The scopes that a message needs, parsed but otherwise untrusted; `undefined` where it needs none. */
  requiredScopes(message: unknown): readonly string[] | undefined {
    if (!isObject(message) || !isObject(message['params'])) return undefined
    const { name, uri, ref } = message['params']
    switch (message['method']) {
      case 'tools/call':
        return typeof name === 'string' ? this.tools.get(name)?.scopes : undefined
      case 'prompts/get':
        return typeof name === 'string' ? this.prompts.get(name)?.scopes : undefined
      case 'resources/read':
        return typeof uri === 'string' ? this.findResource(uri)?.resource.scopes : undefined
      case 'completion/complete':
        // What is suggested may be as private as what it is for.
        if (!isObject(ref)) return undefined
        if (typeof ref['name'] === 'string') return this.prompts.get(ref['name'])?.scopes
        return typeof ref['uri'] === 'string' ? this.templates.get(ref['uri'])?.scopes : undefined
      default:
        return undefined
    }
  }

  listText(
    kind: string,
    catalog: Catalog<{ readonly listing: string }>,
    cursor: unknown,
    principal: string | undefined,
    serverMeta: string,
  ): string {
    const hints = hintsText(this.#listTtlMs, principal)
    return `{"resultType":"complete","${kind}":${catalog.page(cursor)},${hints},"_meta":${serverMeta}}`
  }

  discoverText(
    instructions: string | undefined,
    principal: string | undefined,
    serverMeta: string,
    hasTasks = false,
  ): string {
    const discovered: Pick<DiscoverResult, 'supportedVersions' | 'capabilities' | 'instructions'> = {
      supportedVersions: [...SUPPORTED_REVISIONS],
      capabilities: {
        ...this.#capabilities(),
        ...(hasTasks && { extensions: { [TASKS_EXTENSION]: {} } }),
      },
      ...(instructions !== undefined && { instructions }),
    }
    const inside = JSON.stringify(discovered).slice(1, -1)
    return `{"resultType":"complete",${inside},${hintsText(this.#listTtlMs, principal)},"_meta":${serverMeta}}`
  }

  #capabilities(): ServerCapabilities {
    return {
      tools: { listChanged: true },
      ...(this.prompts.size > 0 && { prompts: { listChanged: true } }),
      ...(this.hasResources && { resources: { listChanged: true, subscribe: true } }),
      ...(this.hasCompletions && { completions: {} }),
      logging: {},
    }
  }
}

const NOTHING_TO_COMPLETE: CompletionTarget = { arguments: [], completers: new Map() }

function hintsText(ttlMs: number, principal: string | undefined): string {
  return JSON.stringify(cacheHints(ttlMs, principal)).slice(1, -1)
}
