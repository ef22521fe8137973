// The ordered record of asks answered, steps done and scopes finished in a flow.
//
// Its text is one flat JSON array with four values per entry: tag, key, milliseconds since the flow started, payload.
// The text of earlier passes is kept and appended to, not written again.
import { FlowError } from './errors.ts'

/**
 * a: answer; s: step; c: scope; t: the end of a sleep. A v after it means no value, an e means that it failed, an x that it expired.
 */
export type Tag = 'a' | 'ax' | 's' | 'sv' | 'se' | 'c' | 'cv' | 'ce' | 't'

export interface Entry {
  readonly tag: Tag
  readonly key: string
  readonly at: number
  readonly payload: unknown
  /** The pass continued without this entry, because its call had not been made. A late call still settles from it. */
  skipped?: boolean
}

export type Action = 'accept' | 'decline' | 'cancel'

/** The payload of an `a` entry: the pin of the question, how many times it was asked, and the validated answer. */
export type AnswerPayload = readonly [pin: string, asked: number, action: Action, value?: unknown]

/** What the user did, by the payload of an `a` entry. */
export function actionIn(payload: unknown): Action {
  const [, , action] = payload as AnswerPayload
  return action
}

const TAGS: ReadonlySet<unknown> = new Set<Tag>(['a', 'ax', 's', 'sv', 'se', 'c', 'cv', 'ce', 't'])
const STRIDE = 4

/** Shared by all journals that start empty: only entries of earlier passes are looked up. */
const NO_ENTRIES = new Map<string, Entry>()

export class Journal {
  /** Entries of earlier passes, in order. Those of this pass are kept as text only: no replay needs them before the next pass. */
  readonly #replay: Entry[]
  readonly #byKey: Map<string, Entry>
  #fresh: { key: string; tag: Tag; text: string }[] = []
  /** How many of these `takePending` has returned. */
  #taken = 0
  /** Something that `takePending` has returned is not in the journal any more. */
  #outdated = false
  #inherited: string
  /** Entries were removed from `#replay` that are still in the inherited text. */
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

  /** Reads a journal text. The seal has authenticated it, but a custom codec may return anything. */
  static read(text: string): Journal {
    if (text === '[]') return Journal.empty()
    let flat: unknown
    try {
      flat = JSON.parse(text)
    } catch (cause) {
      throw new FlowError('JOURNAL_INVALID', 'The saved journal cannot be read: it is not JSON.', { cause })
    }
    if (!Array.isArray(flat) || flat.length % STRIDE !== 0)
      throw new FlowError('JOURNAL_INVALID', 'The saved journal cannot be read: it is cut off.')
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

  /** The key of the first step or scope recorded after this entry: an effect that the answer may have caused. */
  effectAfter(entry: Entry): string | undefined {
    const from = this.#replay.indexOf(entry) + 1
    return (
      this.#replay.slice(from).find(({ tag }) => isEffect(tag))?.key ??
      this.#fresh.find(({ tag }) => isEffect(tag))?.key
    )
  }

  hasAnswers(): boolean {
    return this.#replay.some(({ tag }) => tag.startsWith('a'))
  }

  hasEffects(): boolean {
    return this.#replay.some(({ tag }) => isEffect(tag))
  }

  /** Removes the entry and all earlier-pass entries after it. Returns them, in order. */
  cut(entry: Entry): Entry[] {
    const cut = this.#replay.splice(this.#replay.indexOf(entry))
    for (const { key } of cut) this.#byKey.delete(key)
    this.#rewrite()
    return cut
  }

  /** Removes one entry. */
  remove(entry: Entry): void {
    this.#replay.splice(this.#replay.indexOf(entry), 1)
    this.#byKey.delete(entry.key)
    this.#stale = true
  }

  /** Removes the entries inside a finished scope. Takes the caller's position in the replay, and returns the new one. */
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

  /** What a journal writer has to persist: the entries since the last call, or the whole text if earlier ones were removed. */
  takePending(): { entries: string } | { all: string } | undefined {
    const entries = this.#fresh.slice(this.#taken).map(({ text }) => text)
    this.#taken = this.#fresh.length
    if (this.#stale || this.#outdated) {
      const all = this.text()
      this.#outdated = false
      return { all }
    }
    return entries.length > 0 ? { entries: entries.join(',') } : undefined
  }

  /** The keys of the largest entries with their sizes, for error messages. */
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

  /** Writes the inherited text again without removed entries. Reads the payloads from the text: the handler may have changed its copies. */
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

/** True for a step or a scope: something that the handler did, and that no other version of it may repeat. */
export function isEffect(tag: Tag): boolean {
  return tag.startsWith('s') || tag.startsWith('c')
}

function entryText({ tag, key, at, payload }: Entry): string {
  return `"${tag}",${JSON.stringify(key)},${at},${JSON.stringify(payload)}`
}

function toEntry(tag: unknown, key: unknown, at: unknown, payload: unknown): Entry {
  if (!TAGS.has(tag) || typeof key !== 'string' || typeof at !== 'number') {
    throw new FlowError('JOURNAL_INVALID', 'The saved journal cannot be read: it has an entry of an unknown form.')
  }
  if (tag === 'a' && !isAnswer(payload)) {
    throw new FlowError(
      'JOURNAL_INVALID',
      `The saved journal cannot be read: its answer to "${key}" has an unknown form.`,
    )
  }
  if (tag === 'ax' && !Array.isArray(payload)) {
    throw new FlowError('JOURNAL_INVALID', `The saved journal cannot be read: the end of "${key}" has an unknown form.`)
  }
  return { tag: tag as Tag, key, at, payload }
}

function isAnswer(payload: unknown): payload is AnswerPayload {
  return Array.isArray(payload) && typeof payload[0] === 'string' && typeof payload[1] === 'number'
}
