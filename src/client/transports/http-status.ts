// The error for an HTTP status that does not answer the request, with what the server says about it.
import { isObject } from '../../protocol/json.ts'
import { cut, shown } from '../../protocol/text.ts'
import { readRetryAdvice } from '../../protocol/unavailable.ts'
import { badResponse, ClientError, lost, sentence, unavailable } from '../errors.ts'
import type { ResponseHead } from './http-response.ts'

/** Returns undefined if the body may be the answer: with status 200, or with a JSON-RPC error in it. */
export function statusError(head: ResponseHead, text: string): ClientError | undefined {
  const { status, header } = head
  if (status === 200) return undefined
  const body = parsed(text)
  switch (status) {
    case 401:
    case 403:
      return refused(head, wordsIn(body) ?? wordsInChallenge(header('www-authenticate')) ?? plainText(head, text))
    case 502:
    case 503:
    case 504: {
      const words = wordsIn(body)
      const advice = readRetryAdvice(dataIn(body), header('retry-after'))
      if (advice?.isUnprocessed) return unavailable(words ?? `HTTP ${status}`, advice)
      return lost(
        `the server is not available (HTTP ${status})${words === undefined ? '' : `: ${words}`}`,
        undefined,
        advice,
      )
    }
  }
  if (isObject(body) && body['jsonrpc'] === '2.0' && isObject(body['error'])) return undefined
  if (status > 200 && status < 300) return text === '' ? badResponse(`HTTP ${status} without a body`) : undefined
  const location = header('location')
  const redirect = location === undefined ? '' : ` It redirects to ${shown(location)}; redirects are not followed.`
  const words = status >= 400 ? (wordsIn(body) ?? plainText(head, text)) : undefined
  const said = words === undefined ? '' : ` The server says: ${sentence(words)}`
  return new ClientError(
    'HTTP_STATUS',
    `The server answered HTTP ${status} without a protocol message.${said} Check the address.${redirect}`,
    { status },
  )
}

function refused({ status, header }: ResponseHead, words: string | undefined): ClientError {
  const challenge = header('www-authenticate')
  return new ClientError(
    'UNAUTHORIZED',
    `The server refuses this caller (HTTP ${status})${words === undefined ? '' : `: ${words}`}`,
    challenge === undefined ? { status } : { status, challenge: cut(challenge, MAX_CHALLENGE_LENGTH) },
  )
}

const MAX_CHALLENGE_LENGTH = 8_192
const MAX_WORDS_LENGTH = 500

/** What a JSON body says: the message of a JSON-RPC error, or a member that other servers use. */
function wordsIn(body: unknown): string | undefined {
  if (!isObject(body)) return undefined
  const { error, error_description: description, message, detail } = body
  const inner = isObject(error) ? error['message'] : undefined
  return cleanWords([inner, description, message, detail, error])
}

/** The data of a JSON-RPC error. */
function dataIn(body: unknown): unknown {
  return isObject(body) && isObject(body['error']) ? body['error']['data'] : undefined
}

/** `Bearer error="insufficient_scope", error_description="...", scope="..."`. */
function wordsInChallenge(challenge: string | undefined): string | undefined {
  if (challenge === undefined) return undefined
  const parameter = (name: string): string | undefined => {
    const found = new RegExp(`[\\s,]${name}="((?:[^"\\\\]|\\\\.)*)"`, 'i').exec(
      challenge.slice(0, MAX_CHALLENGE_LENGTH),
    )
    return found?.[1]?.replaceAll(/\\(.)/g, '$1')
  }
  const words = cleanWords([parameter('error_description'), parameter('error')])
  const scope = cleanWords([parameter('scope')])
  if (scope === undefined || parameter('error') !== 'insufficient_scope') return words
  return `${words ?? 'insufficient_scope'} (scope: ${scope})`
}

/** A page of HTML says nothing that a person could read in an error message. */
function plainText({ header }: ResponseHead, text: string): string | undefined {
  return /^text\/plain\b/i.test(header('content-type') ?? '') ? cleanWords([text]) : undefined
}

/** The first text that is not empty, on one line, without control characters. */
export function cleanWords(candidates: readonly unknown[]): string | undefined {
  for (const candidate of candidates) {
    if (typeof candidate !== 'string') continue
    const words = cut(
      candidate
        .slice(0, 2 * MAX_WORDS_LENGTH)
        .replaceAll(UNSAFE, ' ')
        .trim(),
      MAX_WORDS_LENGTH,
    )
    if (words !== '') return words
  }
  return undefined
}

/** Control and format characters (including bidirectional ones), unusual line breaks, lone surrogates. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
