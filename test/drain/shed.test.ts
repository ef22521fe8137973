// Load shedding: flows go on elsewhere while an instance has too much to do, but never so often that a client gives up.
import type { App, ShedLoad } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accept, askedIn, call, textOf } from '../wire/messages.ts'
import { countsOf, deferredState, isDeferred, OPTIONS } from './states.ts'

const QUESTIONS = 7

/** Each of its seven questions is followed by two steps, between which a flow may be handed over. */
function questioning(shed: ShedLoad): App {
  const app = rally({ ...OPTIONS, shed })
  app.tool('questions', { asks: { go: z.object({}) } }, async (_args, io) => {
    let steps = 0
    for (let i = 0; i < QUESTIONS; i += 1) {
      await io.ask(`go[${i}]`, 'Go on?')
      for (const part of ['a', 'b']) steps += await io.step(`${part}[${i}]`, () => 1)
    }
    return `${steps} steps`
  })
  return app
}

function counting(shed: ShedLoad, onStep: (step: number) => void = () => {}): App {
  const app = rally({ ...OPTIONS, shed })
  app.tool('count', { input: z.object({ to: z.number() }) }, async ({ to }, io) => {
    let sum = 0
    for (let i = 1; i <= to; i += 1) {
      sum += await io.step(`add[${i}]`, () => {
        onStep(i)
        return i
      })
    }
    return `The sum is ${sum}.`
  })
  return app
}

/** Takes a flow of `count` to its end, and gives its text and the counts in each of its states. */
async function count(app: App, to: number): Promise<{ text: string; counts: { round: number; deferrals: number }[] }> {
  const counts: { round: number; deferrals: number }[] = []
  let response = await send(app, call('count', { to }))
  while (isDeferred(response)) {
    const requestState = deferredState(response)
    counts.push(countsOf(requestState))
    response = await send(app, call('count', { to }, { requestState }))
  }
  return { text: textOf(response), counts }
}

describe("by the author's own test", () => {
  test('a flow is handed over at most three times, each time one step further, and finishes', async () => {
    const ran: number[] = []
    const { text, counts } = await count(
      counting(
        () => true,
        (step) => ran.push(step),
      ),
      10,
    )
    expect(text).toBe('The sum is 55.')
    expect(counts).toEqual([
      { round: 1, deferrals: 1 },
      { round: 2, deferrals: 2 },
      { round: 3, deferrals: 3 },
    ])
    expect(ran).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  test('no flow is handed over while it says no', async () => {
    expect(
      (
        await count(
          counting(() => false),
          3,
        )
      ).counts,
    ).toEqual([])
  })

  test('it is asked at each step, so that a flow goes on as soon as there is room again', async () => {
    let isBusy = true
    const { text, counts } = await count(
      counting(
        () => isBusy,
        (step) => {
          if (step === 2) isBusy = false
        },
      ),
      4,
    )
    expect(text).toBe('The sum is 10.')
    expect(counts).toEqual([{ round: 1, deferrals: 1 }])
  })

  test.each([
    { behaviour: 'in its fifth round a flow is still handed over', busyFrom: 5, handedOverIn: [5] },
    { behaviour: 'past its fifth round a flow is not handed over any more', busyFrom: 6, handedOverIn: [] },
  ])('$behaviour', async ({ busyFrom, handedOverIn }) => {
    let round = 0
    const app = questioning(() => round >= busyFrom)
    const next = (go: object = {}): Promise<object | undefined> => {
      round += 1
      return send(app, call('questions', {}, go))
    }
    let response = await next()
    const deferredIn: number[] = []
    for (let asked = 0; asked < QUESTIONS; asked += 1) {
      const { state } = askedIn(response)
      response = await next({ requestState: state, inputResponses: { [`go[${asked}]`]: accept() } })
      if (isDeferred(response)) {
        deferredIn.push(round)
        response = await next({ requestState: deferredState(response) })
      }
    }
    expect(textOf(response)).toBe('14 steps')
    expect(deferredIn).toEqual(handedOverIn)
  })

  test('for a drain it does not matter what it says', async () => {
    const app = counting(() => false)
    app.drain()
    const { counts } = await count(app, 8)
    expect(counts.at(-1)).toEqual({ round: 7, deferrals: 7 })
  })
})

describe('by the lag of the event loop', () => {
  test('a flow is handed over once the loop has been blocked for longer', async () => {
    const { text, counts } = await count(
      counting({ lagMs: 100 }, (step) => {
        if (step === 2) block(400)
      }),
      4,
    )
    expect(text).toBe('The sum is 10.')
    expect(counts[0]).toEqual({ round: 1, deferrals: 1 })
    expect(counts.length).toBeLessThanOrEqual(3)
  })

  test('a flow goes on where it was blocked for less', async () => {
    const { text, counts } = await count(
      counting({ lagMs: 60_000 }, (step) => {
        if (step === 2) block(100)
      }),
      4,
    )
    expect(text).toBe('The sum is 10.')
    expect(counts).toEqual([])
  })
})

/** Really keeps the event loop from doing anything else. */
function block(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}
