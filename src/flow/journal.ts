// The ordered record of asks answered, steps done and scopes finished in a flow.
//
// Its text is one flat JSON array of four values an entry: tag, key, milliseconds since the flow started, payload.
// Text that came in is kept and appended to, so that a pass never writes again what an earlier one wrote.
import { FlowError } from './errors.ts'

/** a: answer; s: step; c: scope. v after it: no value; e after it: it failed. */
export type Tag = 'a' | 's' | 'sv' | 'se' | 'c' | 'cv' | 'ce'

export interface Entry {
  readonly tag: Tag
  readonly key: string
  readonly at: number
  readonly payload: unknown
  /** The pass went on without this entry because its call had not come; a late call still finds it. */
  skipped?: boolean
}

export type Action = 'accept' | 'decline' | 'cancel'

/** What an `a` entry holds: the pin of the question it answers, how often that was asked, and the validated answer. */
export type AnswerPayload = readonly [pin: string, asked: number, action: Action, value?: unknown]

const TAGS: ReadonlySet<unknown> = new Set<Tag>(['a', 's', 'sv', 'se', 'c', 'cv', 'ce'])
const STRIDE = 4

/** Shared by all journals that begin empty: only what came in is looked up. */
const NO_ENTRIES = new Map<string, Entry>()

export class Journal {
  /** What came in, in order. Entries of this pass are in the text only: nobody replays them before the next pass. */
  readonly #replay: Entry[]
  readonly #byKey: Map<string, Entry>
  #fresh: { key: string; tag: Tag; text: string }[] = []
  /** How many of these a keeper has been given. */
  #kept = 0
  /** Something that a keeper has is there no more. */
  #outdated = false
  #inherited: string
  /** Entries were taken out of `#replay` that are in the inherited text still. */
  #stale = false
  #bytes: number

  private constructor(replay: Entry[], inherited: string) {
    this.#replay = replay
    this.#byKey = replay.length === 0 ? NO_ENTRIES : new Map(replay.map((entry) => [entry.key, entry]))
    this.#inherited = inherited
    this.#bytes = Buffer.byteLength(inherited) + 2
  }

  static empty(): Journal {
    return new Journal([], '')
  }

  /** Reads a journal text. It has been authenticated, but a codec of the user's own may have brought anything. */
  static read(text: string): Journal {
    if (text === '[]') return Journal.empty()
    let flat: unknown
    try {
      flat = JSON.parse(text)
    } catch (cause) {
      throw new FlowError('JOURNAL_INVALID', 'The journal is not JSON.', { cause })
    }
    if (!Array.isArray(flat) || flat.length % STRIDE !== 0)
      throw new FlowError('JOURNAL_INVALID', 'The journal is torn.')
    const entries: Entry[] = []
    for (let i = 0; i < flat.length; i += STRIDE) entries.push(toEntry(flat[i], flat[i + 1], flat[i + 2], flat[i + 3]))
    return new Journal(entries, text.slice(1, -1))
  }

  get length(): number {
    return this.#replay.length
  }

  /** UTF-8 bytes of the text, counted as entries are appended. */
  get bytes(): number {
    if (this.#stale) this.#rewrite()
    return this.#bytes
  }

  at(index: number): Entry | undefined {
    return this.#replay[index]
  }

  get(key: string): Entry | undefined {
    return this.#byKey.get(key)
  }

  append(tag: Tag, key: string, at: number, payloadText: string): void {
    const text = `"${tag}",${JSON.stringify(key)},${at},${payloadText}`
    this.#fresh.push({ key, tag, text })
    this.#bytes += Buffer.byteLength(text) + 1
  }

  /** The first step or scope recorded after this entry, if any: the effect that an answer may have led to. */
  effectAfter(entry: Entry): string | undefined {
    const from = this.#replay.indexOf(entry) + 1
    return (
      this.#replay.slice(from).find(({ tag }) => tag !== 'a')?.key ?? this.#fresh.find(({ tag }) => tag !== 'a')?.key
    )
  }

  hasAnswers(): boolean {
    return this.#replay.some(({ tag }) => tag === 'a')
  }

  hasEffects(): boolean {
    return this.#replay.some(({ tag }) => tag !== 'a')
  }

  /** Takes the entry and all that came in after it out of the journal, and gives what was taken, in order. */
  cut(entry: Entry): Entry[] {
    const cut = this.#replay.splice(this.#replay.indexOf(entry))
    for (const { key } of cut) this.#byKey.delete(key)
    this.#rewrite()
    return cut
  }

  /** Takes one entry out and leaves the rest. */
  remove(entry: Entry): void {
    this.#replay.splice(this.#replay.indexOf(entry), 1)
    this.#byKey.delete(entry.key)
    this.#stale = true
  }

  /** Drops the contents of a finished scope. Positions of entries not yet replayed move; the caller says where it is. */
  dropScope(prefix: string, cursor: number): number {
    if (this.#fresh.some(({ key }) => key.startsWith(prefix))) {
      this.#fresh = this.#fresh.filter(({ key }) => !key.startsWith(prefix))
      this.#outdated = true
      this.#recount()
    }
    if (!this.#replay.some(({ key }) => key.startsWith(prefix))) return cursor
    const before = this.#replay.slice(0, cursor).filter(({ key }) => key.startsWith(prefix)).length
    const kept = this.#replay.filter(({ key }) => !key.startsWith(prefix))
    for (const { key } of this.#replay) if (key.startsWith(prefix)) this.#byKey.delete(key)
    this.#replay.splice(0, this.#replay.length, ...kept)
    this.#rewrite()
    return cursor - before
  }

  text(): string {
    if (this.#stale) this.#rewrite()
    const fresh = this.#fresh.map(({ text }) => text).join(',')
    return `[${this.#inherited}${this.#inherited !== '' && fresh !== '' ? ',' : ''}${fresh}]`
  }

  /** What there is to keep that a keeper has not been given yet: further entries, or all of them in place of what it has. */
  takePending(): { entries: string } | { all: string } | undefined {
    const entries = this.#fresh.slice(this.#kept).map(({ text }) => text)
    this.#kept = this.#fresh.length
    if (this.#stale || this.#outdated) {
      const all = this.text()
      this.#outdated = false
      return { all }
    }
    return entries.length > 0 ? { entries: entries.join(',') } : undefined
  }

  /** The keys of the largest entries, with their sizes: what an author looks at when the journal is too large. */
  largest(count: number): string[] {
    const sizes = [
      ...this.#replay.map((entry) => ({ key: entry.key, bytes: Buffer.byteLength(entryText(entry)) })),
      ...this.#fresh.map(({ key, text }) => ({ key, bytes: Buffer.byteLength(text) })),
    ]
    return sizes
      .toSorted((one, other) => other.bytes - one.bytes)
      .slice(0, count)
      .map(({ key, bytes }) => `"${key}" (${bytes} bytes)`)
  }

  /** Payloads were handed to the handler, which may have changed them: what is kept is read from the text again. */
  #rewrite(): void {
    const flat = JSON.parse(`[${this.#inherited}]`) as unknown[]
    const kept = new Set(this.#replay.map(({ key }) => key))
    const texts: string[] = []
    for (let i = 0; i < flat.length; i += STRIDE) {
      if (kept.has(flat[i + 1] as string)) texts.push(JSON.stringify(flat.slice(i, i + STRIDE)).slice(1, -1))
    }
    this.#inherited = texts.join(',')
    this.#stale = false
    this.#outdated = true
    this.#recount()
  }

  #recount(): void {
    this.#bytes = Buffer.byteLength(this.#inherited) + 2
    for (const { text } of this.#fresh) this.#bytes += Buffer.byteLength(text) + 1
  }
}

function entryText({ tag, key, at, payload }: Entry): string {
  return `"${tag}",${JSON.stringify(key)},${at},${JSON.stringify(payload)}`
}

function toEntry(tag: unknown, key: unknown, at: unknown, payload: unknown): Entry {
  if (!TAGS.has(tag) || typeof key !== 'string' || typeof at !== 'number') {
    throw new FlowError('JOURNAL_INVALID', 'The journal holds an entry of an unknown form.')
  }
  if (tag === 'a' && !isAnswer(payload)) {
    throw new FlowError('JOURNAL_INVALID', `The journal's answer to "${key}" has an unknown form.`)
  }
  return { tag: tag as Tag, key, at, payload }
}

function isAnswer(payload: unknown): payload is AnswerPayload {
  return Array.isArray(payload) && typeof payload[0] === 'string' && typeof payload[1] === 'number'
}
