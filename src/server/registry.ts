// Everything that is registered on an app, and what clients are told about it.
import type { ServerCapabilities } from '../protocol/messages.ts'
import { Catalog } from './catalog.ts'
import { cacheHints } from './content.ts'
import type { Limits } from './limits.ts'
import { fits, readLimits } from './limits.ts'
import type { RegisteredPrompt } from './prompt.ts'
import type { RegisteredResource, RegisteredTemplate, ResourceTarget } from './resource.ts'
import { resourceTarget } from './resource.ts'
import type { RegisteredTool } from './tool.ts'

export interface ListOptions {
  /** How long clients may keep a list. */
  readonly ttlMs: number
  /** The number of entries of one page. */
  readonly pageSize: number
}

/** The lists, by the name that each has in its result. */
export type ListName = 'tools' | 'prompts' | 'resources' | 'resourceTemplates'

export class Registry {
  readonly tools: Catalog<RegisteredTool>
  readonly prompts: Catalog<RegisteredPrompt>
  readonly resources: Catalog<RegisteredResource>
  readonly resourceTemplates: Catalog<RegisteredTemplate>
  /** What `resolve` checks in messages before anything is looked up here. */
  readonly limits: Limits
  readonly #ttlMs: number

  constructor({ ttlMs, pageSize }: ListOptions, limits = readLimits()) {
    this.limits = limits
    this.#ttlMs = ttlMs
    this.tools = new Catalog('tool', pageSize)
    this.prompts = new Catalog('prompt', pageSize)
    this.resources = new Catalog('resource', pageSize)
    this.resourceTemplates = new Catalog('resource template', pageSize)
  }

  get hasPrompts(): boolean {
    return this.prompts.size > 0
  }

  get hasResources(): boolean {
    return this.resources.size > 0 || this.resourceTemplates.size > 0
  }

  get hasCompletions(): boolean {
    return [...this.prompts.values(), ...this.resourceTemplates.values()].some(({ completers }) => completers.size > 0)
  }

  /** The fixed resource of this URI, or the first template that matches it. */
  findResource(uri: string): ResourceTarget | undefined {
    // Not worth matching against templates.
    if (!fits(uri, this.limits.maxUriBytes)) return undefined
    const fixed = this.resources.get(uri)
    if (fixed !== undefined) return resourceTarget(uri, fixed, {})
    for (const template of this.resourceTemplates.values()) {
      const variables = template.template.match(uri)
      if (variables !== undefined) return resourceTarget(uri, template, variables)
    }
    return undefined
  }

  /** The scopes that it takes to read this URI, or to be notified of its changes. */
  scopesOf(uri: string): readonly string[] | undefined {
    return this.findResource(uri)?.scopes
  }

  /** One page of a list, as the result of its method. */
  list(name: ListName, cursor: unknown): Record<string, unknown> {
    const { listings, ...next } = this[name].page(cursor)
    return { [name]: listings, ...next }
  }

  /** The same as text for 2026-07-28. */
  listText(name: ListName, cursor: unknown, principal: string | undefined, serverMeta: string): string {
    return `{"resultType":"complete","${name}":${this[name].pageText(cursor)},${this.hintsText(principal)},"_meta":${serverMeta}}`
  }

  /** How long, and for whom, clients may keep lists and discovery: as members of a JSON object, without its braces. */
  hintsText(principal: string | undefined): string {
    return JSON.stringify(cacheHints(this.#ttlMs, principal)).slice(1, -1)
  }

  capabilities(): ServerCapabilities {
    return {
      tools: { listChanged: true },
      ...(this.hasPrompts && { prompts: { listChanged: true } }),
      ...(this.hasResources && { resources: { listChanged: true, subscribe: true } }),
      ...(this.hasCompletions && { completions: {} }),
      logging: {},
    }
  }
}
