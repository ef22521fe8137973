// Holds what a server under test sends against the protocol.
import { olderProblems } from '../../legacy/spec.ts'
import { checkMessage } from '../../tasks/spec.ts'
import type { Json } from '../harness/json.ts'
import { isObject, parsed } from '../harness/json.ts'
import type { Watch } from '../harness/target.ts'
import { clipped } from '../harness/target.ts'

/** What was asked, as far as it can be read: a response is held against the method of its request. */
export class Asked {
  readonly #methods = new Map<unknown, string | undefined>()
  /** All that was sent, which may come back. */
  sent = ''

  note(text: string): void {
    this.sent += text
    const message = parsed(text)
    for (const each of Array.isArray(message) ? message : [message]) {
      if (!isObject(each) || typeof each['method'] !== 'string') continue
      const { id, method } = each
      // Two requests of one id: nobody can tell which is answered.
      this.#methods.set(id, this.#methods.has(id) ? undefined : method)
    }
  }

  methodOf(id: unknown): string | undefined {
    return this.#methods.get(id)
  }
}

/** Checks one message of a server, as text. `revision` is that of its session, where there is one. */
export function checkSent(watch: Watch, text: string, asked: Asked, revision?: string): Json | undefined {
  watch.checkLeaks(text, asked.sent)
  for (const [mark] of text.matchAll(/mark-\d+/g)) {
    if (!asked.sent.includes(mark)) watch.report('leak', 'Shows what another client sent', clipped(text))
  }
  const message = parsed(text)
  if (message === undefined) {
    watch.report('invalid', 'The server sent what is not JSON', clipped(text))
    return undefined
  }
  for (const each of Array.isArray(message) ? message : [message]) {
    const problem = problemOf(each, asked, revision)
    if (problem !== undefined) watch.report('invalid', problem, clipped(JSON.stringify(each)))
  }
  return message
}

function problemOf(message: Json, asked: Asked, revision: string | undefined): string | undefined {
  if (!isObject(message) || message['jsonrpc'] !== '2.0') return 'not a JSON-RPC message'
  const { id, method, result, error } = message
  if (isObject(error) && error['message'] === 'Internal error') return 'an internal error'
  if (revision !== undefined && revision !== '2025-11-25') return undefined
  const request = asked.methodOf(id)
  if (result !== undefined && request === undefined) return undefined
  if (revision !== undefined) return olderProblem(message, request)
  if (method !== undefined && id !== undefined) return 'a request of a server, which this revision does not have'
  try {
    checkMessage(message, request ?? '')
    return undefined
  } catch (cause) {
    return (cause as Error).message.replace(/: \{.*$/s, '')
  }
}

function olderProblem(message: { [key: string]: Json }, request: string | undefined): string | undefined {
  const isTask = isObject(message['result']) && isObject(message['result']['task'])
  const problems = olderProblems(message, isTask ? 'tools/call as a task' : request)
  return problems.length > 0 ? problems.join('; ') : undefined
}
