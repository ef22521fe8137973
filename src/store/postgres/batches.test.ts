import { expect, test } from 'vitest'
import { Batches, type BatchItem } from './batches.ts'

interface Statement {
  readonly keys: string
  readonly end: (error?: Error) => void
}

/** Statements that end when they are told to. The result of each operation is its key. */
function make(kind: 'reads' | 'writes' = 'writes'): { batches: Batches<BatchItem, string>; statements: Statement[] } {
  const statements: Statement[] = []
  const batches = new Batches<BatchItem, string>(kind, (items) => {
    return new Promise((resolve, reject) => {
      const keys = items.map(({ key }) => key)
      const end = (error?: Error): void =>
        error === undefined ? resolve(new Map(keys.map((key) => [key, key]))) : reject(error)
      statements.push({ keys: keys.join(' '), end })
    })
  })
  return { batches, statements }
}

const item = (key: string, size = 1, statement = 'write'): BatchItem => ({ key, size, statement })
const turn = (): Promise<void> => new Promise(setImmediate)
const keysOf = (statements: readonly Statement[]): string[] => statements.map(({ keys }) => keys)

/** Two statements that run, so that what comes next has to wait. */
async function busy(kind?: 'reads' | 'writes'): Promise<ReturnType<typeof make>> {
  const made = make(kind)
  for (const key of ['x', 'y']) {
    void made.batches.add(item(key))
    await turn()
  }
  return made
}

test('calls of one turn go together, in the order of their keys', async () => {
  const { batches, statements } = make()
  const results = Promise.all(['c', 'a', 'b'].map((key) => batches.add(item(key))))
  await turn()
  expect(keysOf(statements)).toEqual(['a b c'])
  statements[0]?.end()
  expect(await results).toEqual(['c', 'a', 'b'])
})

test('two statements run at a time, and what comes meanwhile goes into the next', async () => {
  const { batches, statements } = await busy()
  for (const key of ['a', 'b', 'c']) {
    void batches.add(item(key))
    await turn()
  }
  expect(keysOf(statements)).toEqual(['x', 'y'])
  statements[1]?.end()
  await turn()
  await turn()
  expect(keysOf(statements)).toEqual(['x', 'y', 'a b c'])
})

test('a statement has operations of one kind: first that of the call that has waited longest', async () => {
  const { batches, statements } = make()
  const calls = ['1 change', '2 append', '3 change', '4 append']
  const results = Promise.all(calls.map((call) => batches.add(item(call, 1, call.slice(2)))))
  await turn()
  await turn()
  expect(keysOf(statements)).toEqual(['1 change 3 change', '2 append 4 append'])
  for (const { end } of statements) end()
  expect(await results).toEqual(calls)
})

test('writes of one task stay in order, also if they are of different kinds', async () => {
  const { batches, statements } = make()
  for (const statement of ['append', 'change', 'append']) void batches.add(item('t', 1, statement))
  void batches.add(item('u', 1, 'append'))
  for (const running of ['t u', 't', 't']) {
    await turn()
    await turn()
    expect(keysOf(statements).at(-1)).toBe(running)
    statements.at(-1)?.end()
  }
  expect(statements).toHaveLength(3)
})

test('writes of one task run one after the other, also when another statement could run', async () => {
  const { batches, statements } = make()
  for (const key of ['t', 't', 'u', 't']) void batches.add(item(key))
  await turn()
  await turn()
  expect(keysOf(statements)).toEqual(['t u'])
  statements[0]?.end()
  await turn()
  await turn()
  expect(keysOf(statements)).toEqual(['t u', 't'])
})

test('reads of one task share a statement', async () => {
  const { batches, statements } = make('reads')
  const results = Promise.all(['t', 't', 'u'].map((key) => batches.add(item(key))))
  await turn()
  expect(keysOf(statements)).toEqual(['t t u'])
  statements[0]?.end()
  expect(await results).toEqual(['t', 't', 'u'])
})

test.each([
  {
    what: '128 operations',
    items: Array.from({ length: 130 }, (_, i) => item(String(i).padStart(3, '0'))),
    first: 128,
  },
  { what: 'a million characters', items: ['a', 'b', 'c'].map((key) => item(key, 600_000)), first: 2 },
])('a statement takes no more than $what', async ({ items, first }) => {
  const { batches, statements } = make()
  for (const each of items) void batches.add(each)
  await turn()
  await turn()
  expect(statements.map(({ keys }) => keys.split(' ').length)).toEqual([first, items.length - first])
})

test.each([
  { code: '23514', alone: true },
  { code: '40P01', alone: true },
  // The completion of the statement is not known.
  { code: '40003', alone: false },
  { code: '57P01', alone: false },
  { code: 'ECONNRESET', alone: false },
])('after an error $code each operation is tried alone: $alone', async ({ code, alone }) => {
  const { batches, statements } = make()
  const outcomes = Promise.allSettled(['a', 'b'].map((key) => batches.add(item(key))))
  await turn()
  const error = Object.assign(new Error('It failed.'), { code })
  statements[0]?.end(error)
  await turn()
  expect(keysOf(statements)).toEqual(alone ? ['a b', 'a', 'b'] : ['a b'])
  statements[1]?.end(error)
  statements[2]?.end()
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', alone ? 'fulfilled' : 'rejected'])
})
