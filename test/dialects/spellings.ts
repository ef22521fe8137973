// How a client of each draft spells a call and its rounds, for tests that hold in both.
import type { Message } from './wires.ts'

export interface Spelling {
  readonly revision: '2026-06-XX' | '2026-02-03-draft'
  /** A call that brings these along. `undefined` is left out, and whatever else is sent as it is. */
  readonly retry: (params: object, answers: unknown, state: unknown) => Message
  /** What a round that needs input says. */
  readonly asked: (response: Message) => { questions: Message | undefined; state: string }
  /** One answer, as it is sent. */
  readonly answer: (result: unknown) => unknown
}

let lastId = 100

const call = (params: object, beside: object = {}): Message => {
  lastId += 1
  return { jsonrpc: '2.0', id: lastId, method: 'tools/call', params, ...beside }
}

export const spellings: readonly Spelling[] = [
  {
    revision: '2026-06-XX',
    retry: (params, inputResponses, requestState) => call({ ...params, inputResponses, requestState }),
    asked: ({ result }) => {
      const { inputRequests, requestState } = result as { inputRequests?: Message; requestState: string }
      return { questions: inputRequests, state: requestState }
    },
    answer: (result) => result,
  },
  {
    revision: '2026-02-03-draft',
    retry: (params, answers, state) => call(params, { input_responses: answers, request_state: state }),
    asked: ({ input_requests: questions, request_state: state }) => ({
      questions: questions as Message | undefined,
      state: state as string,
    }),
    answer: (result) => ({ result }),
  },
]
