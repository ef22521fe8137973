// The server's lists: all pages of them, kept for as long as the server says that they are fresh.
import type { Logger } from '../protocol/logger.ts'
import type { Prompt, Resource, ResourceTemplate, Tool } from '../protocol/messages.ts'
import { badResponse, tooLarge } from './errors.ts'
import type { Connection, ListName } from './connection.ts'
import { isObject } from '../protocol/json.ts'
import type { Deadline } from './deadline.ts'
import { checkComplete } from './round.ts'
import type { Tools } from './tools.ts'

export interface ListEntries {
  tools: Tool
  prompts: Prompt
  resources: Resource
  resourceTemplates: ResourceTemplate
}

export type ListKind = keyof ListEntries

const METHODS: Record<ListKind, string> = {
  tools: 'tools/list',
  prompts: 'prompts/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
}

const MOST_PAGES = 1_000
const MOST_ENTRIES = 100_000

interface Kept {
  readonly entries: readonly ListEntries[ListKind][]
  readonly freshUntil: number
}

export class Lists {
  readonly #connection: Connection
  readonly #tools: Tools
  readonly #logger: Logger
  readonly #maxBytes: number
  readonly #kept = new Map<ListKind, Kept>()
  /** How often each has changed: what was asked for before a change is not kept. */
  readonly #changes: Record<ListKind, number> = { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 }

  constructor(connection: Connection, tools: Tools, logger: Logger, maxBytes: number) {
    this.#connection = connection
    this.#tools = tools
    this.#logger = logger
    this.#maxBytes = maxBytes
  }

  /** What is kept and still fresh. */
  fresh<K extends ListKind>(kind: K): ListEntries[K][] | undefined {
    const kept = this.#kept.get(kind)
    const isFresh = kept !== undefined && performance.now() < kept.freshUntil
    return isFresh ? ([...kept.entries] as ListEntries[K][]) : undefined
  }

  /** Asks the server. */
  async fetch<K extends ListKind>(kind: K, deadline: Deadline): Promise<ListEntries[K][]> {
    const asked = this.#changes[kind]
    const since = performance.now()
    const { entries, ttlMs } = await this.#pages(kind, deadline)
    const usable = kind === 'tools' ? (this.#tools.learn(entries as Tool[]) as ListEntries[K][]) : entries
    if (asked === this.#changes[kind]) this.#kept.set(kind, { entries: usable, freshUntil: since + ttlMs })
    return [...usable]
  }

  /** Nothing of it is to be relied on any more. */
  drop(list: ListName): void {
    const kinds: readonly ListKind[] = list === 'resources' ? ['resources', 'resourceTemplates'] : [list]
    for (const kind of kinds) {
      this.#changes[kind] += 1
      this.#kept.delete(kind)
    }
    if (list === 'tools') this.#tools.forget()
  }

  async #pages<K extends ListKind>(kind: K, deadline: Deadline): Promise<{ entries: ListEntries[K][]; ttlMs: number }> {
    const method = METHODS[kind]
    const entries: ListEntries[K][] = []
    const cursors = new Set<string>()
    let ttlMs = Infinity
    let total = 0
    for (let members = ''; ;) {
      const { result, bytes } = await this.#connection.request({ method, members, isIdempotent: true }, deadline)
      total += bytes
      if (total > this.#maxBytes) throw tooLarge(this.#maxBytes)
      checkComplete(result, method)
      const { [kind]: page, nextCursor, ttlMs: ttl } = result
      if (!Array.isArray(page)) throw badResponse(`the ${kind} of ${method} are no list`)
      for (const entry of page as unknown[]) if (this.#isEntry(kind, entry)) entries.push(entry)
      if (entries.length > MOST_ENTRIES) throw badResponse(`${method} has more than ${MOST_ENTRIES} entries`)
      ttlMs = Math.min(ttlMs, readTtl(ttl))
      if (nextCursor === undefined || nextCursor === null) return { entries, ttlMs }
      if (typeof nextCursor !== 'string') throw badResponse(`the nextCursor of ${method} is no text`)
      if (cursors.has(nextCursor)) throw badResponse(`${method} gives the same cursor twice`)
      if (cursors.add(nextCursor).size >= MOST_PAGES) throw badResponse(`${method} has more than ${MOST_PAGES} pages`)
      members = `"cursor":${JSON.stringify(nextCursor)}`
    }
  }

  /** One that is malformed is no reason to do without the others. */
  #isEntry<K extends ListKind>(kind: K, entry: unknown): entry is ListEntries[K] {
    const isEntry = isObject(entry) && typeof entry['name'] === 'string' && hasItsOwn(kind, entry)
    if (!isEntry) this.#logger.warn(`An entry of ${METHODS[kind]} is left out, because it is malformed.`, { entry })
    return isEntry
  }
}

function hasItsOwn(kind: ListKind, { inputSchema, outputSchema, uri, uriTemplate }: Record<string, unknown>): boolean {
  switch (kind) {
    case 'tools':
      return isObject(inputSchema) && (outputSchema === undefined || isObject(outputSchema))
    case 'prompts':
      return true
    case 'resources':
      return typeof uri === 'string'
    case 'resourceTemplates':
      return typeof uriTemplate === 'string'
  }
}

function readTtl(ttl: unknown): number {
  return typeof ttl === 'number' && ttl > 0 ? ttl : 0
}
