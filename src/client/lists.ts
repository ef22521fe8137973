// The server's lists with all of their pages, cached for as long as the server says that they are fresh.
import type { Logger } from '../protocol/logger.ts'
import type { CallToolResult, Prompt, Resource, ResourceTemplate, Tool } from '../protocol/messages.ts'
import type { Skill } from '../protocol/skills.ts'
import type { Connection } from './connection.ts'
import { badResponse, ClientError, tooLarge } from './errors.ts'
import type { ListName } from './notifications.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import type { Deadline } from './deadline.ts'
import { checkComplete } from './round.ts'
import type { CallerKey } from './reads.ts'
import { Reads } from './reads.ts'
import { fits, MAX_BYTES } from './server-text.ts'
import { skillProblem } from './skills.ts'
import type { Tools } from './tools.ts'

export interface ListEntries {
  tools: Tool
  prompts: Prompt
  resources: Resource
  resourceTemplates: ResourceTemplate
  skills: Skill
}

export type ListKind = keyof ListEntries

const METHODS: Record<ListKind, string> = {
  tools: 'tools/list',
  prompts: 'prompts/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
  skills: 'skills/list',
}

const MAX_PAGES = 1_000
const MAX_ENTRIES = 100_000

interface CachedList {
  readonly entries: readonly ListEntries[ListKind][]
  readonly freshUntil: number
  readonly isPublic: boolean
  readonly caller: CallerKey
}

interface ListPages<K extends ListKind> {
  readonly entries: ListEntries[K][]
  /** The shortest of all pages. */
  readonly ttlMs: number
  /** True if all pages are for everybody. */
  readonly isPublic: boolean
}

export class Lists {
  readonly reads: Reads
  readonly #connection: Connection
  readonly #tools: Tools
  readonly #logger: Logger
  readonly #maxBytes: number
  readonly #cache = new Map<ListKind, CachedList>()
  /** How often each list has changed. A list that was requested before a change is not cached. */
  readonly #changes: Record<ListKind, number> = { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0, skills: 0 }

  constructor(connection: Connection, tools: Tools, logger: Logger, maxBytes: number) {
    this.#connection = connection
    this.#tools = tools
    this.#logger = logger
    this.#maxBytes = maxBytes
    this.reads = new Reads(maxBytes)
  }

  /** Returns the cached list if it is still fresh. */
  cached<K extends ListKind>(kind: K, caller: CallerKey): ListEntries[K][] | undefined {
    const list = this.#cache.get(kind)
    if (list === undefined || performance.now() >= list.freshUntil) return undefined
    return list.isPublic || list.caller === caller ? ([...list.entries] as ListEntries[K][]) : undefined
  }

  #isFresh(kind: ListKind): boolean {
    return performance.now() < (this.#cache.get(kind)?.freshUntil ?? 0)
  }

  /** Reads all pages from the server. */
  async fetch<K extends ListKind>(kind: K, deadline: Deadline, caller?: CallerKey): Promise<ListEntries[K][]> {
    const changes = this.#changes[kind]
    const since = performance.now()
    const { entries, ttlMs, isPublic } = await this.#pages(kind, deadline)
    const usable = kind === 'tools' ? (this.#tools.learn(entries as Tool[]) as ListEntries[K][]) : entries
    const isUnchanged = changes === this.#changes[kind]
    if (isUnchanged) this.#cache.set(kind, { entries: usable, freshUntil: since + ttlMs, isPublic, caller })
    return [...usable]
  }

  /** Throws `RESULT_INVALID` if the result does not match the tool's own output schema. */
  async checkOutput(name: string, result: CallToolResult, deadline: Deadline): Promise<void> {
    let problems = this.#tools.outputProblems(name, result)
    // The schema may be outdated. If the list cannot be read, the known schema decides.
    if (problems.length > 0 && !this.#isFresh('tools')) {
      await this.fetch('tools', deadline).catch(() => {})
      problems = this.#tools.outputProblems(name, result)
    }
    if (problems.length === 0) return
    throw new ClientError(
      'RESULT_INVALID',
      `The result of ${name} does not match the outputSchema of the tool: ${problems.join('; ')}.`,
    )
  }

  /** Removes a list from the cache. */
  drop(list: ListName): void {
    const kinds: readonly ListKind[] = list === 'resources' ? ['resources', 'resourceTemplates', 'skills'] : [list]
    for (const kind of kinds) {
      this.#changes[kind] += 1
      this.#cache.delete(kind)
    }
    if (list === 'tools') this.#tools.forget()
    if (list === 'resources') this.reads.drop()
  }

  async #pages<K extends ListKind>(kind: K, deadline: Deadline): Promise<ListPages<K>> {
    const method = METHODS[kind]
    const entries: ListEntries[K][] = []
    const cursors = new Set<string>()
    let ttlMs = Infinity
    let isPublic = true
    let total = 0
    for (let params: { cursor?: string } = {}; ;) {
      const { result, bytes } = await this.#connection.request({ method, params, isIdempotent: true }, deadline)
      total += bytes
      if (total > this.#maxBytes) throw tooLarge(this.#maxBytes)
      checkComplete(result, method)
      const { [kind]: page, nextCursor, ttlMs: ttl, cacheScope } = result
      if (!Array.isArray(page)) throw badResponse(`${method}: ${kind} must be a list, got ${shown(page)}`)
      for (const entry of page as unknown[]) if (this.#isEntry(kind, entry)) entries.push(entry)
      if (entries.length > MAX_ENTRIES) throw badResponse(`${method}: the list has more than ${MAX_ENTRIES} entries`)
      ttlMs = Math.min(ttlMs, readTtl(ttl))
      isPublic &&= cacheScope === 'public'
      if (nextCursor === undefined || nextCursor === null) return { entries, ttlMs, isPublic }
      if (typeof nextCursor !== 'string')
        throw badResponse(`${method}: nextCursor must be a string, got ${shown(nextCursor)}`)
      if (!fits(nextCursor, MAX_BYTES.cursor))
        throw badResponse(`${method}: nextCursor must have at most ${MAX_BYTES.cursor} bytes`)
      if (cursors.has(nextCursor)) throw badResponse(`${method}: the server sent the same nextCursor twice`)
      if (cursors.add(nextCursor).size >= MAX_PAGES)
        throw badResponse(`${method}: the list has more than ${MAX_PAGES} pages`)
      params = { cursor: nextCursor }
    }
  }

  /** An invalid entry is left out and logged. */
  #isEntry<K extends ListKind>(kind: K, entry: unknown): entry is ListEntries[K] {
    const { name, uri } = isObject(entry) ? entry : {}
    const problem = kind === 'skills' ? skillProblem(entry) : entryProblem(kind, entry)
    if (problem === undefined) return true
    this.#logger.warn(`${METHODS[kind]}: an entry is not valid and is left out.`, { name: shown(name ?? uri), problem })
    return false
  }
}

function entryProblem(kind: Exclude<ListKind, 'skills'>, entry: unknown): string | undefined {
  const { name } = isObject(entry) ? entry : {}
  if (typeof name !== 'string' || !fits(name, MAX_BYTES.name))
    return `name must be a string of at most ${MAX_BYTES.name} bytes`
  return isObject(entry) && hasMembersOf(kind, entry) ? undefined : 'a member is missing or has the wrong type'
}

function hasMembersOf(
  kind: Exclude<ListKind, 'skills'>,
  { inputSchema, outputSchema, uri, uriTemplate }: Record<string, unknown>,
): boolean {
  switch (kind) {
    case 'tools':
      return isObject(inputSchema) && (outputSchema === undefined || isObject(outputSchema))
    case 'prompts':
      return true
    case 'resources':
      return typeof uri === 'string' && fits(uri, MAX_BYTES.uri)
    case 'resourceTemplates':
      return typeof uriTemplate === 'string' && fits(uriTemplate, MAX_BYTES.uri)
  }
}

function readTtl(ttl: unknown): number {
  return typeof ttl === 'number' && ttl > 0 ? ttl : 0
}
