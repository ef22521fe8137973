import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { elicit, inputRequired } from '../flow/by-hand.ts'
import type { Io } from '../flow/io.ts'
import { resolver } from '../flow/resolver.ts'
import { accept, cancel, decline, harsh, straight, type Report } from '../testing.ts'
import { ReplayMismatch } from './replay-check.ts'

const CONFIRM = z.object({ confirm: z.boolean() })
const asks = { confirm: CONFIRM }

describe('harsh runs a handler to its end', () => {
  test('and reports what it came to, as in any tool test', async () => {
    const report = await harsh(
      async ({ env }, io) => {
        const plan = await io.step('plan', () => ({ sha: 'abc' }))
        const { confirm } = await io.ask('confirm', `Deploy ${plan.sha} to ${env}?`)
        if (!confirm) return 'Left as it was.'
        await io.step('ship', () => {})
        return `Deployed ${plan.sha} to ${env}`
      },
      { args: { env: 'prod' }, asks, answer: () => accept({ confirm: true }) },
    )
    expect(report).toMatchObject({
      result: 'Deployed abc to prod',
      error: undefined,
      effects: ['plan', 'ship'],
      warnings: [],
    })
    expect(report.rounds).toBeGreaterThan(1)
    expect(report.passes).toHaveLength(report.rounds)
  })

  test('and reports a failure of the handler as such', async () => {
    const { result, error } = await harsh(async (_args, io) => {
      await io.confirm('sure', 'Sure?')
      throw new TypeError('No such service')
    })
    expect(result).toBeUndefined()
    expect(error).toEqual(new TypeError('No such service'))
  })

  test.each([
    { answer: decline, error: 'The user declined the question "confirm".' },
    { answer: cancel, error: 'The user cancelled the question "confirm".' },
  ])('and says what a handler makes of it that the user did not accept: $error', async ({ answer, error }) => {
    const report = await harsh((_args, io) => io.ask('confirm', 'Sure?'), { asks, answer })
    expect(report.error).toMatchObject({ name: 'Declined', message: error })
  })

  test('with a question that nobody answers', async () => {
    const report = await harsh((_args, io) => io.ask('confirm', 'Sure?'), { asks, answer: () => undefined })
    expect(report.error).toMatchObject({ code: 'ASKED_TOO_OFTEN', message: expect.stringContaining('No answer came.') })
  })

  test('that needs values, as they are declared with a tool', async () => {
    const stock = resolver('stock', { run: ({ title }: { title: string }) => ({ title, copies: 0 }) })
    const backorder = resolver('backorder', {
      needs: { stock },
      run: async (_args, io, needs) => needs.stock.copies > 0 || io.confirm('ok', `Order ${needs.stock.title} in?`),
    })
    const report = await harsh(
      async (_args, io, needs) => io.step('order', () => (needs.backorder ? 'ordered' : 'left')),
      {
        args: { title: 'Emma' },
        needs: { backorder },
      },
    )
    expect(report).toMatchObject({ result: 'ordered', effects: ['order'] })
  })

  test('that takes its rounds by hand, under one key as it likes', async () => {
    const report = await harsh(
      async (_args, io) => {
        const [name, age] = (io.responses.state() as string[] | undefined) ?? []
        const { value } = io.responses.accepted('next', z.object({ value: z.string() })) ?? {}
        const known = [name ?? value, name === undefined ? undefined : (age ?? value)].filter(
          (each) => each !== undefined,
        )
        const [first, second] = known
        if (second === undefined) {
          const question = elicit(first === undefined ? 'Name?' : 'Age?', z.object({ value: z.string() }))
          return inputRequired({ inputRequests: { next: question }, state: known })
        }
        await io.step('save', () => first)
        return `${first} is ${second}`
      },
      {
        answer: (question) =>
          accept({
            value:
              'params' in question && 'message' in question.params && question.params.message === 'Age?' ? '36' : 'Ada',
          }),
      },
    )
    expect(report).toMatchObject({ result: 'Ada is 36', effects: ['save'] })
    expect(report.rounds).toBeGreaterThanOrEqual(3)
  })

  test('in as many ways as it is told, every one of them reset to the start', async () => {
    const rows: string[] = []
    const reset = vi.fn<() => void>(() => void rows.splice(0))
    await harsh(
      async (_args, io) => {
        await io.step('insert', () => rows.push('row'))
        await io.confirm('sure', 'Sure?')
      },
      { runs: 4, reset, observe: () => rows },
    )
    // Each way is a harsh run and a straight one.
    expect(reset).toHaveBeenCalledTimes(8)
  })

  test('the same way for the same seed, and in another for another', async () => {
    expect(await askThreeBy(7)).toEqual(await askThreeBy(7))
    const rounds = await Promise.all([1, 2, 3, 4, 5].map(async (seed) => (await askThreeBy(seed)).rounds))
    expect(new Set(rounds).size).toBeGreaterThan(1)
  })

  test.each([
    {
      call: () => harsh(undefined as never),
      says: /^harsh: the first argument must be a handler, or an app of .*, got undef/,
    },
    {
      call: () => harsh({ tool() {} } as never, 'x'),
      says: /^harsh: the first argument must be .*, got an object\.$/,
    },
    { call: () => harsh(() => 1, { runs: 0 }), says: /^harsh: `runs` must be a whole number of at least 1, got 0\.$/ },
    { call: () => harsh(() => 1, { maxRounds: Number.NaN }), says: /^harsh: `maxRounds` must be .*, got NaN\.$/ },
    { call: () => harsh(() => 1, { caller: 'ann' as never }), says: /^`caller` must be an object .*, got "ann"\./ },
    { call: () => straight(() => 1, { caller: {} as never }), says: /^`caller` must be an object .*, got an object\./ },
  ])('and refuses wrong arguments: $says', async ({ call, says }) => {
    await expect(call()).rejects.toMatchObject({ code: 'OPTION_INVALID', message: expect.stringMatching(says) })
  })

  test.each([true, { confirm: true }, null])('and says what an answer must be when it gets %j', async (given) => {
    const answer = (): never => given as never
    const message =
      /^The question "sure": `answer` must return an answer or undefined, got .*\. Return accept\(\{ \.\.\. \}\), decl/
    const error = { code: 'UNANSWERED', message: expect.stringMatching(message) }
    await expect(harsh(askSure, { answer })).rejects.toMatchObject(error)
    await expect(harsh(askSure, { answer: async () => answer() })).rejects.toMatchObject(error)
    expect((await straight(askSure, { answer })).error).toMatchObject(error)
  })

  test('and gives up when it takes too many rounds', async () => {
    const visiting = harsh((_args, io) => io.visit('pay', 'Pay.', 'https://example.com', { done: () => false }), {
      maxRounds: 20,
    })
    await expect(visiting).rejects.toMatchObject({
      code: 'TOO_MANY_ROUNDS',
      message:
        "harsh: the flow was not done after maxRounds = 20 rounds. Check that the handler's loop ends, or raise maxRounds.",
    })
  })
})

describe('harsh delivers answers', () => {
  test('in every order', async () => {
    const orders = new Set<string>()
    for (let seed = 1; seed <= 60; seed += 1) {
      const { journal } = await askThreeBy(seed)
      const keys = (JSON.parse(journal) as unknown[]).filter((_, index) => index % 4 === 1)
      orders.add(keys.join(''))
    }
    expect([...orders].toSorted()).toEqual(['abc', 'acb', 'bac', 'bca', 'cab', 'cba'])
  })

  test('late, a few at a time and wrong at first', async () => {
    const rounds = new Set<number>()
    const noted: string[] = []
    for (let seed = 1; seed <= 30; seed += 1) {
      const report = await askThreeBy(seed)
      rounds.add(report.rounds)
      noted.push(report.journal)
    }
    // In two rounds when all come at once, in one more for each that is late.
    expect(rounds.has(2)).toBe(true)
    expect(Math.max(...rounds)).toBeGreaterThan(4)
    // The count of an answer says how often its question was asked.
    expect(noted.some((journal) => /,3,"accept"/.test(journal))).toBe(true)
  })
})

describe('harsh finds what does not replay, and says what to do', () => {
  test('a question that is not the same on every pass', async () => {
    let luck = 0
    const found = await mistakeOf((io) => io.confirm('sure', `Order number ${(luck += 1)}?`))
    expect(found.key).toBe('sure')
    expect(found.message).toBe(
      'The question "sure" changed from one pass to the next. It was ' +
        `${questionText('Order number 1?')} and is now ${questionText('Order number 2?')}. ` +
        'Build questions from arguments and recorded values only; io.now(), io.random() and io.uuid() are the same in every pass. ' +
        'To reproduce it: { seed: 1, runs: 1 }.',
    )
  })

  test('a key that is not the same on every pass', async () => {
    let luck = 0
    const found = await mistakeOf(async (io) => {
      await io.step(`order-${(luck += 1)}`, () => 1)
      await io.confirm('sure', 'Sure?')
    })
    expect(found.key).toBe('order-1')
    expect(found.message).toBe(
      'A pass did not repeat the pass before it. Then: "order-1" was called (io.step). Now: "order-2" was called (io.step). ' +
        'Between io calls, a handler and its keys may depend only on its arguments and on what io returned. ' +
        'To reproduce it: { seed: 1, runs: 1 }.',
    )
  })

  test('a branch that is not taken again', async () => {
    let passes = 0
    const found = await mistakeOf(async (io) => {
      passes += 1
      await io.step(passes % 2 === 0 ? 'even' : 'odd', () => 1)
      await io.confirm('sure', 'Sure?')
    })
    expect(found.message).toContain('Then: "odd" was called (io.step). Now: "even" was called (io.step).')
  })

  test('an effect outside a step, in what it leaves behind', async () => {
    const mails: string[] = []
    const found = await mistakeOf(
      async (io) => {
        mails.push('Your order is on its way.')
        await io.confirm('sure', 'Sure?')
      },
      { reset: () => void mails.splice(0), observe: () => mails.length },
    )
    expect(found.message).toMatch(
      /^`observe` returned 1 after a single pass, and \d after \d rounds\. A side effect outside a step happens again in every pass: put it into io\.step\. To reproduce it: \{ seed: \d+, runs: 1 \}\.$/,
    )
  })

  test('an effect outside a step, in what comes of it', async () => {
    let counter = 0
    const found = await mistakeOf(
      async (io) => {
        counter += 1
        await io.confirm('sure', 'Sure?')
        return counter
      },
      { reset: () => void (counter = 0) },
    )
    expect(found.message).toMatch(
      /^The handler returned 1 in a single pass, and (\d) over \1 rounds\. Possible causes: a step assigns an outer variable \(return the value instead\), a side effect is outside a step \(put it into io\.step\)/,
    )
  })

  test('a step that assigns a variable outside it', async () => {
    const found = await mistakeOf(async (io) => {
      let total = 0
      await io.step('count', () => void (total = 7))
      await io.confirm('sure', 'Sure?')
      return total
    })
    expect(found.message).toMatch(/^The handler returned 7 in a single pass, and 0 over \d rounds\./)
    expect(found).toMatchObject({ before: 7, after: 0 })
  })

  test('a step that is only sometimes done', async () => {
    const found = await mistakeOf(async (io) => {
      let asked = false
      await io.step('note', () => void (asked = true))
      await io.confirm('sure', 'Sure?')
      if (asked) await io.step('extra', () => 1)
    })
    expect(found.key).toBe('extra')
    expect(found.message).toMatch(/^The step "extra" ran in a single pass, but not over several rounds\./)
  })

  test('a handler that changes its arguments is given fresh ones on every pass, so that this is no mistake', async () => {
    const report = await harsh(
      async (args, io) => {
        args.list.push('x')
        await io.confirm('sure', 'Sure?')
        return args.list.length
      },
      { args: { list: [] as string[] } },
    )
    expect(report.result).toBe(1)
  })

  test.each<{ mistake: string; run: (io: Io) => Promise<unknown>; error: object }>([
    {
      mistake: 'a question inside a step',
      run: (io) => io.step('outer', () => io.confirm('sure', 'Sure?')),
      error: { code: 'NESTED_CALL', message: expect.stringContaining('inside the step "outer"') },
    },
    {
      mistake: 'a key that is used twice',
      run: async (io) => [await io.confirm('sure', 'Sure?'), await io.confirm('sure', 'Really?')],
      error: { code: 'KEY_REUSED', message: expect.stringContaining('"sure[0]"') },
    },
    {
      mistake: 'a result that JSON would lose',
      run: (io) => io.step<unknown>('load', () => new Map()),
      error: { code: 'NOT_JSON', message: expect.stringContaining('the step "load": $ is a Map') },
    },
  ])('$mistake, which the engine itself refuses', async ({ run, error }) => {
    expect((await harsh((_args, io) => run(io))).error).toMatchObject(error)
  })

  test('a mistake by hand: an answer that is taken without a look at it', async () => {
    const found = await mistakeOf(async (io) => {
      const answer = io.responses.raw('name')
      if (answer === undefined)
        return inputRequired({ inputRequests: { name: elicit('Name?', z.object({ name: z.string() })) } })
      return (answer['content'] as { name?: string } | undefined)?.name ?? 'nobody'
    })
    expect(found.message).toMatch(/^The handler returned 'text' in a single pass, and 'nobody' over \d rounds\./)
  })

  test('a race is no mistake, where it is told that the order of answers may decide', async () => {
    await expect(harsh(race, { runs: 20 })).rejects.toBeInstanceOf(ReplayMismatch)
    const { result } = await harsh(race, { runs: 20, compare: false })
    expect(['a', 'b']).toContain(result)
  })
})

describe('straight runs a handler in one pass', () => {
  test('in which every question is answered as it is asked', async () => {
    const report = await straight(async (_args, io) => [
      await io.confirm('a', 'A?'),
      await io.choose('b', 'B?', ['x', 'y']),
    ])
    expect(report).toMatchObject({ result: [true, 'x'], rounds: 1 })
  })

  test.each([
    { name: 'no answer', answer: () => undefined },
    { name: 'an answer that does not fit', answer: () => accept({ confirm: 'maybe' }) },
  ])('and says which questions got $name', async ({ answer }) => {
    const { error } = await straight(askBoth, { answer })
    expect(error).toMatchObject({ code: 'UNANSWERED', message: expect.stringContaining('Questions asked: "a", "b".') })
  })

  test('and the rounds that are taken by hand', async () => {
    const report = await straight((_args, io) => {
      if (io.responses.action('page') === undefined) {
        return inputRequired({ inputRequests: { page: elicit('Go on?', CONFIRM) } })
      }
      return 'went on'
    })
    expect(report).toMatchObject({ result: 'went on', rounds: 2 })
  })

  test('and does not wait for ever for one that nobody answers', async () => {
    const report = await straight(() => inputRequired({ inputRequests: { page: elicit('Go on?', CONFIRM) } }), {
      answer: () => undefined,
    })
    expect(report.error).toMatchObject({ code: 'UNANSWERED' })
  })
})

function askSure(_args: object, io: Io): Promise<boolean> {
  return io.confirm('sure', 'Sure?')
}

function askThree(io: Io): Promise<unknown> {
  return Promise.all(['a', 'b', 'c'].map((key) => io.confirm(key, `${key}?`)))
}

function askThreeBy(seed: number): Promise<Report> {
  return harsh((_args, io) => askThree(io), { seed, runs: 1 })
}

function race(_args: unknown, io: Io): Promise<string> {
  return Promise.race(['a', 'b'].map((key) => io.confirm(key, `${key}?`).then(() => key)))
}

function askBoth(_args: unknown, io: Io): Promise<unknown> {
  return Promise.all(['a', 'b'].map((key) => io.confirm(key, `${key}?`)))
}

async function mistakeOf(
  run: (io: Io) => Promise<unknown>,
  options: { reset?: () => void; observe?: () => unknown } = {},
): Promise<ReplayMismatch> {
  try {
    await harsh((_args, io) => run(io), options)
  } catch (error) {
    if (error instanceof ReplayMismatch) return error
    throw error
  }
  throw new Error('Nothing was found.')
}

function questionText(message: string): string {
  return `{"method":"elicitation/create","params":{"mode":"form","message":"${message}","requestedSchema":{"type":"object","properties":{"confirm":{"type":"boolean","title":"Confirm"}},"required":["confirm"]}}}`
}

describe('with a caller whose token is refreshed between passes', () => {
  const claims = { department: 'sales', limit: 100, vip: true, roles: ['admin'], org: { tier: 'gold' }, teams: [] }
  const caller = { principal: 'ada', scopes: ['approve'], claims }

  test.each<[string, (args: {}, io: Io) => Promise<unknown>]>([
    [
      'a text of a question',
      async (_args, io) => io.confirm('sure', `Should ${String(io.caller?.claims['department'])} pay?`),
    ],
    [
      'a key',
      async (_args, io) => {
        await io.step(`book[${String(io.caller?.claims['limit'])}]`, () => {})
        return io.confirm('sure', 'Sure?')
      },
    ],
    [
      'a branch',
      async (_args, io) => {
        if (io.caller?.claims['vip'] === true) await io.step('gift', () => {})
        return io.confirm('sure', 'Sure?')
      },
    ],
    [
      'a branch by a list',
      async (_args, io) => {
        if ((io.caller?.claims['roles'] as string[] | undefined)?.includes('admin') === true)
          await io.confirm('first', 'First?')
        return io.confirm('sure', 'Sure?')
      },
    ],
    [
      'a branch by a member of an object',
      async (_args, io) => {
        if ((io.caller?.claims['org'] as { tier: string } | undefined)?.tier === 'gold') await io.step('gift', () => {})
        return io.confirm('sure', 'Sure?')
      },
    ],
    [
      'a branch by a claim that is not there at first',
      async (_args, io) => {
        await io.confirm('sure', 'Sure?')
        if (io.caller?.claims['trusted'] === undefined) await io.step('check', () => {})
        return io.confirm('really', 'Really?')
      },
    ],
    [
      'a branch by whether a claim is there',
      async (_args, io) => {
        if (!('trusted' in (io.caller?.claims ?? {}))) await io.step('check', () => {})
        return io.confirm('sure', 'Sure?')
      },
    ],
    [
      'a branch by scopes',
      async (_args, io) => {
        if (io.caller?.scopes.some((scope) => scope.startsWith('refreshed:')) !== true)
          await io.confirm('first', 'First?')
        return io.confirm('sure', 'Sure?')
      },
    ],
  ])('a handler that picks %s by them outside of a step is found', async (_what, handler) => {
    const found = await harsh(handler, { caller }).catch((error: unknown) => error)
    expect(found).toBeInstanceOf(ReplayMismatch)
    expect((found as ReplayMismatch).message).toContain('read in a step what picks a branch, a key or a text')
    // Without changes there is nothing to find.
    expect((await straight(handler, { caller })).error).toBeUndefined()
  })

  test('a handler that reads them in a step, or only refuses by them, passes', async () => {
    const report = await harsh(
      async (_args, io) => {
        if (io.caller?.scopes.includes('approve') !== true) return 'You may not.'
        const department = await io.step('department', () => String(io.caller?.claims['department']))
        const sure = await io.confirm('sure', `Should ${department} pay?`)
        // They are plain objects.
        await io.step('claims', () => structuredClone(io.caller?.claims) as {})
        if (io.caller.claims['vip'] !== true) throw new Error('You may not any more.')
        await io.step('pay', () => {})
        return `${io.caller.principal}: ${department}, ${sure}`
      },
      { caller },
    )
    expect(report).toMatchObject({
      result: 'ada: sales, true',
      error: undefined,
      effects: ['department', 'claims', 'pay'],
    })
  })
})
