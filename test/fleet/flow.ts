// One flow of `long_sum` as a client takes it from round to round, with nothing but HTTP and what it was last told.
import type { Round } from '../wire/messages.ts'
import { accept, askedIn, call, headersOf, resultOf, textOf } from '../wire/messages.ts'
import { SERVED_BY } from './proxy.ts'

const PLUS = 1_000_000

export class Flow {
  readonly id: number
  /** Steps on each side of the question. */
  readonly n: number
  /** What the client holds while it thinks about the question. */
  state = ''
  /** The ports of the instances that handed the flow over. */
  readonly deferredBy: number[] = []
  /** Rounds that were lost and sent again. */
  repeats = 0
  readonly #url: string

  constructor(id: number, n: number, url: string) {
    this.id = id
    this.n = n
    this.#url = url
  }

  get expected(): string {
    return `The sum is ${this.n * (2 * this.n + 1) + PLUS}.`
  }

  /** Takes the flow to its question. */
  async begin(): Promise<void> {
    const { state, messages } = askedIn({ result: await this.#take({}) })
    if (messages['go_on'] !== `The sum is ${(this.n * (this.n + 1)) / 2}. Go on?`) {
      throw new Error(`Flow ${this.id} asked ${JSON.stringify(messages)}.`)
    }
    this.state = state
  }

  /** Answers the question and gives the text of the result. */
  async finish(): Promise<string> {
    const round = { requestState: this.state, inputResponses: { go_on: accept({ plus: PLUS }) } }
    return textOf({ result: await this.#take(round) })
  }

  /** Goes on for as long as the flow is handed over. */
  async #take(round: Round): Promise<Record<string, unknown>> {
    for (let pause = 5; ; pause *= 2) {
      const { result, port } = await this.#send(round)
      if (result['resultType'] !== 'input_required' || 'inputRequests' in result) return result
      this.deferredBy.push(port)
      round = { requestState: result['requestState'] }
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }

  /** A round that was lost is sent again where it carried a state: nothing else is safe. */
  async #send(round: Round): Promise<{ result: Record<string, unknown>; port: number }> {
    const message = call('long_sum', { flow: this.id, n: this.n }, round)
    const body = JSON.stringify(message)
    const response = await fetch(this.#url, { method: 'POST', headers: headersOf(message), body })
    if (response.status === 502 && round.requestState !== undefined) {
      this.repeats += 1
      return this.#send(round)
    }
    if (response.status !== 200) throw new Error(`Flow ${this.id} got ${response.status}: ${await response.text()}`)
    return { result: resultOf((await response.json()) as object), port: Number(response.headers.get(SERVED_BY)) }
  }
}
