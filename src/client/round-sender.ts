// Sends the rounds of one call. A server may refuse a round without having done anything, until the client sends other
// headers or the user has visited a page. Such a round is sent again.
import { HEADER_MISMATCH, ProtocolError } from '../protocol/errors.ts'
import { isObject, toJsonText } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import { META_IDEMPOTENCY_KEY } from '../protocol/revisions/2026-07-28.ts'
import { headersOf } from '../schema/param-headers.ts'
import type { AnswerContext } from './answers/answerers.ts'
import type { CheckedAnswers } from './answers/answering.ts'
import { answerQuestions } from './answers/answering.ts'
import type { CallTarget } from './call.ts'
import type { ClientContext } from './context.ts'
import type { Deadline } from './deadline.ts'
import { RETRY_FORMAT } from './discovery.ts'
import { wrongOption } from './errors.ts'
import type { RequiredVisits } from './legacy/required-visits.ts'
import type { CallOptions } from './options.ts'

export class RoundSender {
  readonly #context: ClientContext
  readonly #target: CallTarget
  readonly #deadline: Deadline
  readonly #answerContext: AnswerContext
  readonly #onProgress: CallOptions['onProgress']
  readonly #wantsTask: boolean
  readonly #metaText: string | undefined
  #hasRefetchedTools = false
  #visits: RequiredVisits | undefined
  /** Of the first round, the same for all of its attempts. */
  #key: string | undefined

  constructor(
    context: ClientContext,
    target: CallTarget,
    deadline: Deadline,
    answerContext: AnswerContext,
    { onProgress, meta, wantsTask }: CallOptions & { readonly wantsTask: boolean },
  ) {
    this.#context = context
    this.#target = target
    this.#deadline = deadline
    this.#answerContext = answerContext
    this.#onProgress = onProgress
    this.#wantsTask = wantsTask
    this.#metaText = meta === undefined ? undefined : writeMeta(meta)
  }

  /** Returns the untrusted result. `answers` and `state` are those of the round before. */
  async send(answers: CheckedAnswers | undefined, state: string | undefined): Promise<Record<string, unknown>> {
    const { connection, lists, tools } = this.#context
    const { call, method, name, paramsText: callText } = this.#target
    const isTool = method === 'tools/call'
    const { inParams, beside } = (connection.retryFormat ?? RETRY_FORMAT).writeRetry(answers, state)
    for (;;) {
      const paramsText =
        callText + (connection.taskDialect !== undefined && isTool ? await this.#taskText() : '') + inParams
      const isSafe = state !== undefined || (isTool && tools.isIdempotent(name))
      const repeats = isSafe ? undefined : this.#repeats
      const idempotencyKey = repeats === undefined ? undefined : (this.#key ??= newIdempotencyKey())
      const headers = isTool && connection.usesParamHeaders ? this.#headers() : []
      const onProgress = this.#onProgress
      const request = {
        method,
        name,
        paramsText,
        extraText: beside,
        headers,
        call,
        isIdempotent: isSafe || repeats !== undefined,
        mayOverlap: isSafe || repeats === 'recorded',
        idempotencyKey,
        onProgress,
        metaText: this.#metaText,
      }
      try {
        const { result } = await connection.request(request, this.#deadline)
        return connection.taskDialect?.readCreated(result) ?? result
      } catch (error) {
        if (connection.retryFormat === undefined && (await this.#hasVisited(error))) continue
        const isRefused = isTool && connection.usesParamHeaders && isHeaderMismatch(error)
        if (!isRefused || this.#hasRefetchedTools) throw error
        // The cached tool is outdated: the server expects other headers.
        this.#hasRefetchedTools = true
        await lists.fetch('tools', this.#deadline)
      }
    }
  }

  /**
   * What the server does with a first round that is repeated. `known`: its steps and tasks keep their ids. `recorded`: the response
   * comes from a record, and a repeat waits while the first attempt runs. Undefined: it would be another call.
   */
  get #repeats(): 'known' | 'recorded' | undefined {
    const { server, connection } = this.#context
    const extension = server.capabilities.extensions?.[META_IDEMPOTENCY_KEY]
    // Without a network a response is lost because the server died, perhaps of this very call.
    if (!connection.canLoseRequests || connection.retryFormat !== RETRY_FORMAT || !isObject(extension)) return undefined
    return extension['records'] === true ? 'recorded' : 'known'
  }

  /**
   * A legacy server makes a task only of a call that asks for one, and its list says of which. Some report it as a failure of the tool
   * if a call does not ask, so the list is read first.
   */
  async #taskText(): Promise<string> {
    const { tools, lists } = this.#context
    const { name } = this.#target
    if (!tools.knows(name) && !this.#hasRefetchedTools) {
      this.#hasRefetchedTools = true
      await lists.fetch('tools', this.#deadline)
    }
    const support = tools.taskSupport(name)
    return support === 'required' || (this.#wantsTask && support === 'optional') ? ',"task":{}' : ''
  }

  #headers(): string[] {
    const params = this.#context.tools.headersFor(this.#target.name)
    return params.length === 0 ? [] : headersOf(params, this.#target.arguments ?? {})
  }

  /** True if a legacy server refused the call only until its user visits some pages, and the call may be sent again. */
  async #hasVisited(error: unknown): Promise<boolean> {
    const { answerers, connection } = this.#context
    if (answerers.onVisit === undefined) return false
    const { RequiredVisits: Visits } = await import('./legacy/index.ts')
    const deadline = this.#deadline
    this.#visits ??= new Visits({
      ask: (pages) => deadline.waitForUser(answerQuestions(pages, new Map(), this.#context, this.#answerContext)),
      pause: (ms, pages) => connection.waitForVisit(ms, pages, deadline),
    })
    return this.#visits.allow(error)
  }
}

/** Random bytes for many keys: the system call costs more than the bytes. */
const pool = new Uint8Array(16 * 64)
let unused = 0

/** The two digits of each byte. */
const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** 128 random bits, as hexadecimal digits. */
function newIdempotencyKey(): string {
  if (unused === 0) unused = crypto.getRandomValues(pool).length
  let key = ''
  for (const end = unused - 16; unused > end; unused -= 1) key += DIGITS[pool[unused - 1] ?? 0]
  return key
}

function isHeaderMismatch(error: unknown): boolean {
  return error instanceof ProtocolError && error.rpcCode === HEADER_MISMATCH
}

/** The user's own members of `_meta`, as JSON text without braces. */
function writeMeta(meta: Readonly<Record<string, unknown>>): string {
  if (!isObject(meta)) throw wrongOption(`meta must be an object, got ${shown(meta)}.`)
  const reserved = Object.keys(meta).find((name) => RESERVED.test(name))
  if (reserved !== undefined) {
    throw wrongOption(`meta: ${shown(reserved)} is set by the client. Use a name such as "com.example/ticket".`)
  }
  return toJsonText(meta, '`meta`').slice(1, -1)
}

/** Names of the protocol, and those that this client sets. */
const RESERVED = /^(progressToken$|__proto__$|([^/]*\.)?(modelcontextprotocol|mcp|mcp-rally)(\.[^/]*)?\/)/i
