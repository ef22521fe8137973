// Questions on a page of our own, which the user opens by a link: its options, and what hosts know of it. The room `apps/` serves it.
import type { ClientInfo } from '../flow/caller.ts'
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import type { CheckedAppsOptions } from './apps-options.ts'
import { readSharedOptions } from './apps-options.ts'
import type { Reply } from './reply.ts'

/** Options of questions on a page by a link. */
export interface PageOptions {
  /**
   * The address of the page as users reach it, such as 'https://mcp.example.com/ask'. Hosts serve it at that path. It must be https,
   * except on loopback. Default: none, and only clients over standard streams are asked: their links lead to this machine.
   */
  url?: string
  /**
   * Says who opened the page, such as by the cookie of your login. Only the principal that called the tool can answer. Return
   * `{ redirect }` to send a visitor to your login. Default: none, and `trustModelWithLink` is needed.
   */
  identify?: IdentifyVisitor
  /**
   * Lets everybody answer who has the link. The model has it too, so a model that can open addresses can answer in place of the
   * user. Default false.
   */
  trustModelWithLink?: boolean
  /** How long a call of `rally_result` waits for the user, in milliseconds. Default 25 000. */
  waitMs?: number
  /** How long the user may take for one round, and how long its outcome is kept, in seconds. `maxAge` limits it too. Default 86 400. */
  ttl?: number
  /**
   * Whether a client is asked by a link: `true` or `false` for clients that declare the wrong thing, `undefined` for all others.
   * Default: if the client has no forms of its own, and is not asked in an MCP App.
   */
  when?: (client: ClientInfo) => boolean | undefined
}

/** What `identify` sees of a request, as `authenticate` does. */
export interface PageRequest {
  /** The HTTP method, in capitals. */
  readonly method: string
  /** As the host got it: the path and the query on Node, the whole URL with the Fetch API. */
  readonly url: string
  /** Returns the value of a header. The name may be in any case. */
  readonly header: (name: string) => string | undefined
}

/** The principal, as `authenticate` names it for the client; where to log in; or nothing, which is a 401. */
export type PageVisitor = string | { readonly principal: string } | { readonly redirect: string } | undefined | null

/** Says who visits a page of questions, or where to send somebody who is not logged in. */
export type IdentifyVisitor = (request: PageRequest) => PageVisitor | Promise<PageVisitor>

export interface CheckedPageOptions extends CheckedAppsOptions {
  /** Without a query and a fragment. */
  readonly url: string | undefined
  /** `undefined`: whoever has the link may answer. */
  readonly identify: IdentifyVisitor | undefined
}

/** The page, as hosts know it. */
export interface AnswerPage {
  /** The address that users reach it at, over HTTP. */
  readonly url: string | undefined
  /** True if a request to this URL is for the page. */
  takes(url: string): boolean
  /**
   * Answers a request that needs no body. Returns who sends it if a body must be read, which `answer` then gets. Never throws.
   */
  open(request: PageRequest, origin: string): Promise<Reply | AdmittedVisitor>
  /** Never throws. */
  answer(visitor: AdmittedVisitor, body: string): Promise<Reply>
  /** A host without HTTP sets it: opens a listener on this machine, once, and returns its address. */
  openLocally: (() => Promise<string>) | undefined
}

/** Who sends answers, for which call. */
export interface AdmittedVisitor {
  readonly kind: 'visitor'
  /** `undefined` if nobody is identified. */
  readonly principal: string | undefined
  readonly id: string
}

/** The parameter of a link that names the call. */
export const CALL_PARAMETER = 'call'

/** Checks the option when the app is built. */
export function readPageOptions(given: unknown): CheckedPageOptions | undefined {
  if (given === undefined) return undefined
  if (!isObject(given)) throw invalid(`\`page\` must be an object of options, got ${shown(given)}.`)
  const { url, identify, trustModelWithLink = false, ...shared }: PageOptions = given
  if (identify !== undefined && typeof identify !== 'function') {
    throw invalid(`\`page.identify\` must be a function of the request, got ${shown(identify)}.`)
  }
  if (typeof trustModelWithLink !== 'boolean') {
    throw invalid(`\`page.trustModelWithLink\` must be true or false, got ${shown(trustModelWithLink)}.`)
  }
  if ((identify === undefined) !== trustModelWithLink) {
    const problem = identify === undefined ? 'one of them is missing' : 'both are there'
    throw invalid(
      `\`page\` must have either \`identify\` or \`trustModelWithLink: true\`, but ${problem}. The model sees the link, so the page must know its visitor by something else, such as the cookie of your login.`,
    )
  }
  return { url: url === undefined ? undefined : readUrl(url), identify, ...readSharedOptions('page', shared) }
}

function readUrl(given: unknown): string {
  const url = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined
  const isPlain = url !== undefined && url.search + url.hash + url.username + url.password === ''
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.has(url.hostname))
  if (isPlain && isSafe) return url.href
  throw invalid(
    `\`page.url\` must be an https address without a query, such as 'https://mcp.example.com/ask', got ${shown(given)}. On loopback it may be http.`,
  )
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

function invalid(message: string): RallyError {
  return new RallyError('OPTION_INVALID', message)
}
