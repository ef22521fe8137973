// Valid messages, and how each of them fares with something else in any place of it.
import {
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  META_VERSION,
} from '../../src/protocol/revisions/2026-07-28.ts'
import { ARGS, WANTED } from './hostile.ts'
import type { WireRequest } from './messages.ts'
import { call, request } from './messages.ts'

/** By the path of what is replaced, its keys with spaces between them: how the message fares with this value there. */
export type Fates = Readonly<Record<string, (value: unknown) => string>>

export interface Replacements {
  name: string
  /** `retry` is a valid second round. */
  message: (retry: WireRequest) => WireRequest
  fates: Fates
}

const isText = (value: unknown): boolean => typeof value === 'string'
const isId = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number'
const isEmpty = (value: unknown): boolean => JSON.stringify(value) === '{}'
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)
const isNothing = (value: unknown): boolean => value === null || isEmpty(value)

const always = (fate: string) => () => fate
const either = (fits: (value: unknown) => boolean, good: string, bad: string) => (value: unknown) =>
  fits(value) ? good : bad

/** What all requests have; `served` is how they fare when nothing is wrong. */
const envelope = (served: string): Fates => ({
  '': always('400 -32600'),
  jsonrpc: always('400 -32600'),
  id: either(isId, served, '400 -32600'),
  method: either(isText, '404 -32601', '400 -32600'),
  params: either(isEmpty, '400 -32602', '400 -32600'),
  'params _meta': always('400 -32602'),
  [`params _meta ${META_VERSION}`]: either(isText, '400 -32022', '400 -32602'),
  [`params _meta ${META_CLIENT_INFO}`]: always('400 -32602'),
  [`params _meta ${META_CLIENT_INFO} name`]: either(isText, served, '400 -32602'),
  [`params _meta ${META_CLIENT_INFO} version`]: either(isText, served, '400 -32602'),
  [`params _meta ${META_LOG_LEVEL}`]: always('400 -32602'),
  'params _meta progressToken': either(isId, served, '400 -32602'),
})

/** What the client declares; `withoutForms` is how a request fares that may ask no form. */
const declarations = (served: string, withoutForms: string): Fates => ({
  [`params _meta ${META_CAPABILITIES}`]: either(isEmpty, withoutForms, '400 -32602'),
  [`params _meta ${META_CAPABILITIES} elicitation`]: either(isObject, served, withoutForms),
  [`params _meta ${META_CAPABILITIES} elicitation form`]: either(isObject, served, withoutForms),
  [`params _meta ${META_CAPABILITIES} elicitation url`]: always(served),
  [`params _meta ${META_CAPABILITIES} sampling`]: always(served),
  [`params _meta ${META_CAPABILITIES} sampling tools`]: always(served),
  [`params _meta ${META_CAPABILITIES} sampling context`]: always(served),
  [`params _meta ${META_CAPABILITIES} roots`]: always(served),
})

export const replacements: readonly Replacements[] = [
  {
    name: 'a list of tools',
    message: () => request('tools/list', {}, WANTED),
    fates: { ...envelope('done'), ...declarations('done', 'done') },
  },
  {
    name: 'a discovery',
    message: () => request('server/discover', {}, WANTED),
    fates: { ...envelope('done'), ...declarations('done', 'done') },
  },
  {
    name: 'a first round',
    message: () => call('deploy', ARGS, {}, WANTED),
    fates: {
      ...envelope('asks'),
      ...declarations('asks', '400 -32021'),
      'params name': always('200 -32602'),
      'params arguments': either(isEmpty, 'isError', '200 -32602'),
      'params arguments env': either(isText, 'asks', 'isError'),
      'params arguments options': always('isError'),
      'params arguments options force': either((value) => value === true, 'asks', 'isError'),
      'params arguments options tags': either(Array.isArray, 'asks', 'isError'),
      'params arguments options tags 0': either(isText, 'asks', 'isError'),
    },
  },
  {
    name: 'a second round',
    message: (retry) => retry,
    fates: {
      ...envelope('done'),
      // Its question is answered, so nothing has to be asked.
      ...declarations('done', 'done'),
      'params name': always('200 -32602'),
      'params arguments': either(isEmpty, '200 frozen', '200 -32602'),
      'params arguments env': always('200 frozen'),
      'params arguments options': always('200 frozen'),
      'params arguments options force': always('200 frozen'),
      'params arguments options tags': always('200 frozen'),
      'params arguments options tags 0': always('200 frozen'),
      'params requestState': always('200 frozen'),
      'params inputResponses': either(isNothing, 'asks', '200 -32602'),
      'params inputResponses ok': either(isNothing, 'asks', '200 -32602'),
      'params inputResponses ok action': always('asks'),
      'params inputResponses ok content': always('asks'),
      'params inputResponses ok content ok': either((value) => value === true, 'done', 'asks'),
    },
  },
]
