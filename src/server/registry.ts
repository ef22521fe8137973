// Everything that is registered on an app, and what clients are told about it.
import { RallyError } from '../protocol/errors.ts'
import type { ServerCapabilities } from '../protocol/messages.ts'
import type { CallSource } from '../flow/caller.ts'
import type { Logger } from '../protocol/logger.ts'
import { SKILLS_EXTENSION } from '../protocol/skills.ts'
import { Catalog } from './catalog.ts'
import { cacheHints } from './content.ts'
import type { Limits } from './limits.ts'
import { fits, readLimits } from './limits.ts'
import type { RegisteredMethod } from './own-method.ts'
import type { RegisteredPrompt } from './prompt.ts'
import type { RegisteredResource, RegisteredTemplate, ResourceTarget } from './resource.ts'
import { resourceTarget } from './resource.ts'
import type { RegisteredSkill, SkillDirectory } from './skill.ts'
import { scopesOfSubscription } from './subscriptions.ts'
import type { RegisteredTool } from './tool.ts'
import type { Guarded, Naming, Viewer } from './visibility.ts'
import { isListed, isVisible } from './visibility.ts'

export interface ListOptions {
  /** How long clients may keep a list. */
  readonly ttlMs: number
  /** The number of entries of one page. */
  readonly pageSize: number
}

/** The lists, by the name that each has in its result. */
export type ListName = 'tools' | 'prompts' | 'resources' | 'resourceTemplates' | 'skills'

export class Registry {
  readonly tools: Catalog<RegisteredTool>
  readonly prompts: Catalog<RegisteredPrompt>
  readonly resources: Catalog<RegisteredResource>
  readonly resourceTemplates: Catalog<RegisteredTemplate>
  /** By the URI of their SKILL.md, which is a resource too. */
  readonly skills: Catalog<RegisteredSkill>
  /** Files of skills that lists of resources leave out. */
  readonly #skillFiles = new Map<string, RegisteredResource>()
  readonly #skillDirectories = new Map<string, SkillDirectory>()
  readonly #methods = new Map<string, RegisteredMethod>()
  /** Finds the tool that a call answers questions of, in an app that asks in pages. */
  findAnswered: ((params: Readonly<Record<string, unknown>>) => AnsweredTool | undefined) | undefined
  #hidesMethods = false
  readonly #extensions: Extensions
  /** What `resolve` checks in messages before anything is looked up here. */
  readonly limits: Limits
  readonly #ttlMs: number
  readonly #logger: Logger

  constructor(
    { ttlMs, pageSize }: ListOptions,
    limits = readLimits(),
    logger: Logger = console,
    extensions: Extensions = {},
  ) {
    this.#extensions = extensions
    this.#logger = logger
    this.limits = limits
    this.#ttlMs = ttlMs
    this.tools = new Catalog('tool', pageSize)
    this.prompts = new Catalog('prompt', pageSize)
    this.resources = new Catalog('resource', pageSize)
    this.resourceTemplates = new Catalog('resource template', pageSize)
    this.skills = new Catalog('skill', pageSize)
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

  get hasSkills(): boolean {
    return this.skills.size > 0
  }

  /** What clients may use beside the protocol, each extension with its settings. */
  get extensions(): Extensions {
    return this.hasSkills ? { ...this.#extensions, [SKILLS_EXTENSION]: { directoryRead: true } } : this.#extensions
  }

  addMethod(method: RegisteredMethod): void {
    const { name } = method
    if (this.#methods.has(name)) throw taken(`The method ${name}`)
    this.#methods.set(name, method)
    this.#hidesMethods ||= method.visible !== undefined
  }

  /** A method that the app itself brings. */
  findMethod(name: string): RegisteredMethod | undefined {
    return this.#methods.get(name)
  }

  addSkill(skill: RegisteredSkill): void {
    const { uri } = skill.listing
    const clash = [uri, ...skill.files.keys(), ...skill.directories.keys()].find((each) => this.#hasSkillUri(each))
    if (clash !== undefined) throw taken(`Skill "${skill.path}": ${clash}`)
    this.skills.add(uri, skill)
    this.resources.add(uri, skill.manifest)
    for (const [file, resource] of skill.files) this.#skillFiles.set(file, resource)
    for (const [directory, children] of skill.directories) this.#skillDirectories.set(directory, children)
  }

  #hasSkillUri(uri: string): boolean {
    return this.resources.get(uri) !== undefined || this.#skillFiles.has(uri) || this.#skillDirectories.has(uri)
  }

  /** The folder of a skill. */
  findDirectory(uri: string): SkillDirectory | undefined {
    return this.#skillDirectories.get(uri)
  }

  /** The fixed resource of this URI, or the first template that matches it. */
  findResource(uri: string): ResourceTarget | undefined {
    // Not worth matching against templates.
    if (!fits(uri, this.limits.maxUriBytes)) return undefined
    const fixed = this.resources.get(uri) ?? this.#skillFiles.get(uri)
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
  list(name: ListName, cursor: unknown, viewer: Viewer): Record<string, unknown> {
    const { listings, ...next } = this[name].page(cursor, this.#filterFor(name, viewer))
    return { [name]: listings, ...next }
  }

  /** The same as text for 2026-07-28. */
  listText(name: ListName, cursor: unknown, viewer: Viewer, serverMeta: string): string {
    const filter = this.#filterFor(name, viewer)
    const hints = this.hintsText(filter === undefined && viewer.caller === undefined)
    return `{"resultType":"complete","${name}":${this[name].pageText(cursor, filter)},${hints},"_meta":${serverMeta}}`
  }

  /** How long, and for whom, clients may keep lists and discovery: as members of a JSON object, without its braces. */
  hintsText(isForAll: boolean): string {
    return JSON.stringify(cacheHints(this.#ttlMs, isForAll)).slice(1, -1)
  }

  /** True if anything is hidden from some callers. */
  get hides(): boolean {
    const { tools, prompts, resources, resourceTemplates } = this
    return tools.hides || prompts.hides || resources.hides || resourceTemplates.hides || this.#hidesMethods
  }

  /** The request as it is for this caller: what is hidden is not found. */
  seenBy<T extends Naming>(request: T, source: CallSource): T {
    if (!this.hides) return request
    const guarded = request.target ?? request.completion ?? request.own
    if (guarded !== undefined) {
      return isVisible(guarded, source, this.#logger)
        ? request
        : { ...request, target: undefined, completion: undefined, own: undefined, scopes: undefined }
    }
    const scopes = scopesOfSubscription(request.method, request.params, (uri) =>
      this.sees(uri, source) ? this.scopesOf(uri) : undefined,
    )
    return { ...request, scopes }
  }

  /** True if the caller may know whether something changes at this URI. */
  sees(uri: string, source: CallSource): boolean {
    if (!this.resources.hides && !this.resourceTemplates.hides) return true
    const resource = this.findResource(uri)
    return resource === undefined || isVisible(resource, source, this.#logger)
  }

  #filterFor(name: ListName, viewer: Viewer): ((entry: Guarded) => boolean) | undefined {
    if (!this[name].differs(viewer.checksScopes)) return undefined
    return (entry) => isListed(entry, viewer, this.#logger)
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

/** A tool whose questions a page of the client answers. The caller needs what a call of the tool itself needs. */
export interface AnsweredTool extends Guarded {
  readonly kind: 'answered'
  readonly tool: RegisteredTool
}

/** The settings of extensions, by the name of each. */
export type Extensions = Readonly<Record<string, object>>

function taken(what: string): RallyError {
  return new RallyError('NAME_TAKEN', `${what} is registered already. Use another name.`)
}
