// What every TaskStore must do. Each store runs this suite. The numbers are those of the invariants in src/tasks/store.ts.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ClaimedTask, Held, News, NewTask, TaskRecord, TaskStatus, TaskStore } from '../../src/tasks/store.ts'
import type { Gate } from '../../src/testing/manual.ts'
import { gate } from '../../src/testing/manual.ts'

/** A store under test. */
export interface TasksUnderTest {
  readonly tasks: TaskStore
  /** What another instance of the fleet has in its hands: it keeps the same tasks. */
  readonly another: TaskStore
  /** Lets time go by for the store, by its clock or by waiting. */
  elapse(ms: number): void | Promise<void>
  close?(): void | Promise<void>
}

/** Long and short, by any clock and on any machine. */
const LONG_MS = 60_000
const SHORT_MS = 50
const PAST_SHORT_MS = 100
/** Time enough to do something before it is over, also by a clock that goes on by itself. */
const TTL_MS = 1_000
const PAST_TTL_MS = 1_100

const ENDS: TaskStatus[] = ['completed', 'failed', 'cancelled']

/** A task as an engine might make one; what is given replaces what is here. */
export function newTask(id: string, given: Partial<NewTask> = {}): NewTask {
  return {
    id,
    owner: 'ada',
    request: '{"name":"deploy"}',
    state: '{"round":1}',
    journal: '[]',
    message: undefined,
    pollMs: 1_000,
    ttlMs: null,
    ...given,
  }
}

export function taskStoreContract(name: string, open: () => TasksUnderTest | Promise<TasksUnderTest>): void {
  describe(`the contract of a TaskStore: ${name}`, () => {
    let opened: TasksUnderTest
    let tasks: TaskStore
    let another: TaskStore

    beforeEach(async () => {
      opened = await open()
      ;({ tasks, another } = opened)
    })
    afterEach(() => opened.close?.())

    const elapse = async (ms: number): Promise<void> => opened.elapse(ms)

    const claim = (after = '', leaseMs = LONG_MS, by = tasks): Promise<ClaimedTask | undefined> =>
      by.claim({ after, leaseMs })

    const claimed = async (leaseMs = LONG_MS, by = tasks): Promise<ClaimedTask> => {
      const task = await claim('', leaseMs, by)
      if (task === undefined) throw new Error('A task should be due, and none is.')
      return task
    }

    const made = async (id: string, given: Partial<NewTask> = {}): Promise<TaskRecord> =>
      tasks.create(newTask(id, given))

    const present = async (id: string, by = tasks): Promise<TaskRecord> => {
      const task = await by.read(id)
      if (task === undefined) throw new Error(`"${id}" should be there, and is not.`)
      return task
    }

    /** A task, and the worker that holds it. */
    const heldTask = async (id = 't', given: Partial<NewTask> = {}, leaseMs = LONG_MS): Promise<ClaimedTask> => {
      await made(id, given)
      const task = await claimed(leaseMs)
      expect(task.id).toBe(id)
      return task
    }

    /** Held by a worker whose lease ran out, and by the one that took it over. */
    const takenOver = async (): Promise<{ late: ClaimedTask; successor: ClaimedTask }> => {
      const late = await heldTask('t', {}, SHORT_MS)
      await elapse(PAST_SHORT_MS)
      return { late, successor: await claimed(LONG_MS, another) }
    }

    const park = (held: Held, by = tasks): Promise<number | undefined> =>
      by.change(held.id, { fence: held.fence }, { status: 'input_required', letGo: true, dueMs: null })

    describe('making and reading', () => {
      test('a task is there for everybody as it was made', async () => {
        const before = await made('t', { message: 'Begun.', ttlMs: LONG_MS, pollMs: 250 })
        expect(before).toEqual({
          id: 't',
          owner: 'ada',
          request: '{"name":"deploy"}',
          state: '{"round":1}',
          status: 'working',
          message: 'Begun.',
          pollMs: 250,
          ttlMs: LONG_MS,
          createdAt: expect.any(Number),
          updatedAt: before.createdAt,
          outcome: undefined,
          version: expect.any(Number),
        })
        expect(await tasks.read('t')).toEqual(before)
        expect(await another.read('t')).toEqual(before)
      })

      test('nothing is where no task was made', async () => {
        expect(await tasks.read('t')).toBeUndefined()
        expect(await tasks.change('t', {}, { message: 'Hello.' })).toBeUndefined()
        expect(await tasks.append({ id: 't', fence: 1 }, '1')).toBe(false)
        expect(await tasks.renew([{ id: 't', fence: 1 }], LONG_MS)).toEqual([])
        expect(await claim()).toBeUndefined()
        expect(await tasks.list('ada', 10)).toEqual([])
        expect(await tasks.sweep()).toBe(0)
      })

      test('of two tasks with one id the first stands, and the second maker is given it', async () => {
        const first = await made('t', { owner: 'ada', state: '1' })
        expect(await another.create(newTask('t', { owner: 'bob', state: '2', journal: '[2]' }))).toEqual(first)
        const task = await claimed()
        expect(task).toMatchObject({ owner: 'ada', state: '1', journal: '[]' })
        expect(await claim()).toBeUndefined()
      })

      test('a task that is made again after it has come to its end is at its end', async () => {
        await made('t')
        await tasks.change('t', {}, { status: 'completed', outcome: '"done"' })
        expect(await made('t')).toMatchObject({ status: 'completed', outcome: '"done"' })
        expect(await claim()).toBeUndefined()
      })

      test('of many that make the same task at once each is given the same one', async () => {
        const all = await Promise.all(
          Array.from({ length: 20 }, (_, i) => (i % 2 ? tasks : another).create(newTask('t', { state: String(i) }))),
        )
        expect(new Set(all.map((task) => JSON.stringify(task))).size).toBe(1)
        expect(await tasks.list('ada', 50)).toHaveLength(1)
      })

      test.each([
        { what: 'the empty text', text: '' },
        { what: 'any character', text: `it's 100% "\\n" \u2028 \u00e4 \u4f60 \u{1F600}` },
        { what: 'a long text', text: 'x'.repeat(300_000) },
      ])('texts come back to the letter: $what', async ({ text }) => {
        const json = JSON.stringify(text)
        await made('t', { request: json, state: json, journal: `[${json}]`, message: text })
        const task = await claimed()
        expect(task).toMatchObject({ request: json, state: json, journal: `[${json}]`, message: text })
        await tasks.append(task, json)
        await tasks.change('t', { fence: task.fence }, { state: `[${json}]`, letGo: true, dueMs: 0 })
        expect(await claimed()).toMatchObject({ state: `[${json}]`, journal: `[${json},${json}]` })
        await tasks.change('t', {}, { status: 'completed', outcome: json })
        expect(await another.read('t')).toMatchObject({ outcome: json })
      })

      test.each([{ id: 'a\0b' }, { id: '\u0001a' }, { id: '\ud800' }, { id: "'; --" }, { id: 'A' }])(
        'an id that is no plain word is only itself: $id',
        async ({ id }) => {
          await made('a')
          await made('\ufffd')
          expect(await tasks.read(id)).toBeUndefined()
          expect(await made(id, { owner: id, message: id })).toMatchObject({ id, owner: id, message: id })
          expect(await tasks.read(id)).toMatchObject({ id, owner: id, message: id })
          expect(await tasks.read('a')).toMatchObject({ owner: 'ada' })
          expect(await tasks.list(id, 10)).toHaveLength(1)
        },
      )
    })

    describe('listing', () => {
      test('the tasks of an owner are listed by age, and nobody else has them in his list', async () => {
        for (const id of ['c', 'a', 'b']) {
          await made(id, { owner: 'ada' })
          await made(`other ${id}`, { owner: 'bob' })
          await elapse(5)
        }
        await made('nobody', { owner: '' })
        const list = await tasks.list('ada', 10)
        expect(ids(list)).toEqual(['c', 'a', 'b'])
        expect(list[0]).toEqual(await tasks.read('c'))
        expect(ids(await another.list('', 10))).toEqual(['nobody'])
        expect(await tasks.list('ad', 10)).toEqual([])
      })

      test('a list goes on after the task named, and each is in it once', async () => {
        await Promise.all(Array.from({ length: 7 }, (_, i) => made(`t${i}`)))
        const seen: string[] = []
        let last: TaskRecord | undefined
        for (let pages = 0; pages < 5; pages += 1) {
          const page: TaskRecord[] = await tasks.list('ada', 3, last)
          expect(page.length).toBeLessThanOrEqual(3)
          seen.push(...ids(page))
          last = page.at(-1) ?? last
        }
        expect(seen.toSorted()).toEqual(Array.from({ length: 7 }, (_, i) => `t${i}`))
      })

      test('a list goes on after a task that is no more', async () => {
        await made('a', { ttlMs: TTL_MS })
        await elapse(5)
        await made('b')
        const [first] = await tasks.list('ada', 1)
        await elapse(PAST_TTL_MS)
        await tasks.sweep()
        expect(ids(await tasks.list('ada', 10, first))).toEqual(['b'])
      })

      test('tasks of every status are in the list', async () => {
        for (const status of ENDS) {
          await made(status)
          await tasks.change(status, {}, { status })
          await elapse(5)
        }
        expect((await tasks.list('ada', 10)).map(({ status }) => status)).toEqual(ENDS)
      })

      test('a list of none is empty', async () => {
        await made('t')
        expect(await tasks.list('ada', 0)).toEqual([])
      })
    })

    describe('claiming', () => {
      test('a task is due as soon as it is made, and is given with its journal', async () => {
        const task = await made('t', { journal: '["s","plan",5,{"sha":"c0ffee"}]' })
        const claim1 = await claimed(LONG_MS, another)
        expect(claim1).toEqual({
          ...task,
          fence: expect.any(Number),
          journal: '["s","plan",5,{"sha":"c0ffee"}]',
          lost: false,
        })
      })

      test('a claim is no change', async () => {
        const before = await made('t')
        await elapse(5)
        await claimed()
        expect(await tasks.read('t')).toEqual(before)
      })

      test('a task that is held is nobody else to take', async () => {
        await heldTask()
        expect(await claim()).toBeUndefined()
        expect(await claim('', LONG_MS, another)).toBeUndefined()
      })

      test('a task falls due again when the lease runs out, and is lost then; its fence is higher', async () => {
        const { late, successor } = await takenOver()
        expect(successor).toMatchObject({ id: 't', lost: true, version: late.version })
        expect(successor.fence).toBeGreaterThan(late.fence)
      })

      test('a task that was let go is not lost', async () => {
        const first = await heldTask('t', {}, SHORT_MS)
        await tasks.change('t', { fence: first.fence }, { letGo: true, dueMs: 0 })
        await elapse(PAST_SHORT_MS)
        const second = await claimed()
        expect(second.lost).toBe(false)
        expect(second.fence).toBeGreaterThan(first.fence)
      })

      test('of the tasks of an owner the one that has been due for longest comes first', async () => {
        for (const id of ['c', 'a', 'b']) {
          await made(id)
          await elapse(5)
        }
        const first = await claimed()
        await tasks.change(first.id, { fence: first.fence }, { letGo: true, dueMs: 0 })
        const order = [first.id]
        for (let i = 0; i < 3; i += 1) order.push((await claimed()).id)
        expect(order).toEqual(['c', 'a', 'b', 'c'])
      })

      test('owners are served in turn, in the order of their names, going round', async () => {
        for (const owner of ['bob', '', 'cyd', 'ada'])
          for (const n of [1, 2]) await made(`${owner}${n}`, { owner, message: String(n) })
        const served: string[] = []
        let after = ''
        for (let task = await claim(after); task !== undefined; task = await claim(after)) {
          after = task.owner
          served.push(after)
        }
        expect(served).toEqual(['ada', 'bob', 'cyd', '', 'ada', 'bob', 'cyd', ''])
      })

      test('the turn goes on after an owner that has nothing, and comes round to the same one', async () => {
        await made('t1', { owner: 'bob' })
        await made('t2', { owner: 'bob' })
        expect(await claim('ada')).toMatchObject({ owner: 'bob' })
        expect(await claim('bob')).toMatchObject({ owner: 'bob' })
        expect(await claim('bob')).toBeUndefined()
      })

      test('an owner whose tasks are not due is passed over', async () => {
        const parked = await heldTask('parked', { owner: 'bob' })
        await park(parked)
        await heldTask('held', { owner: 'bob' })
        const later = await heldTask('later', { owner: 'bob' })
        await tasks.change('later', { fence: later.fence }, { letGo: true, dueMs: LONG_MS })
        await made('t', { owner: 'cyd' })
        expect(await claim('ada')).toMatchObject({ id: 't' })
        expect(await claim('ada')).toBeUndefined()
      })

      test.each([
        { after: '', except: 'ada', served: ['bob', 'cyd', ''] },
        { after: 'ada', except: 'bob', served: ['cyd', '', 'ada'] },
        { after: 'bob', except: 'bob', served: ['cyd', '', 'ada'] },
        { after: 'cyd', except: '', served: ['ada', 'bob', 'cyd'] },
        { after: 'zoe', except: 'nobody', served: ['', 'ada', 'bob', 'cyd'] },
      ])('nothing is taken of the owner "$except", beginning after "$after"', async ({ after, except, served }) => {
        for (const owner of ['ada', 'bob', 'cyd', '']) await made(`of ${owner}`, { owner })
        const taken: string[] = []
        let last = after
        for (;;) {
          const task = await tasks.claim({ after: last, except, leaseMs: LONG_MS })
          if (task === undefined) break
          last = task.owner
          taken.push(last)
        }
        expect(taken).toEqual(served)
        // It was there to be taken, had it not been excepted.
        expect(await claim(last)).toEqual(served.length === 4 ? undefined : expect.objectContaining({ owner: except }))
      })

      test('of many that claim at once no two get the same task', async () => {
        const all = Array.from({ length: 30 }, (_, i) => `t${i}`)
        await Promise.all(all.map((id, i) => made(id, { owner: `owner ${i % 4}` })))
        const got = await Promise.all(Array.from({ length: 50 }, (_, i) => claim('', LONG_MS, i % 2 ? tasks : another)))
        const taken = got.flatMap((task) => (task === undefined ? [] : [task.id]))
        // One that finds itself overtaken may come away with nothing; what is left is there for the next.
        for (let task = await claim(); task !== undefined; task = await claim()) taken.push(task.id)
        expect(taken.toSorted()).toEqual(all.toSorted())
      })

      test('of many that claim at once what was lost exactly one gets it', async () => {
        const { fence } = await heldTask('t', {}, SHORT_MS)
        await elapse(PAST_SHORT_MS)
        const got = await Promise.all(Array.from({ length: 20 }, (_, i) => claim('', LONG_MS, i % 2 ? tasks : another)))
        const taken = got.filter((task) => task !== undefined)
        expect(taken).toHaveLength(1)
        expect(taken[0]?.fence).toBeGreaterThan(fence)
      })
    })

    describe('holding', () => {
      test('a lease that is renewed does not run out', async () => {
        const held = await heldTask('t', {}, SHORT_MS)
        expect(await tasks.renew([held], LONG_MS)).toEqual([{ id: 't', fence: held.fence, version: held.version }])
        await elapse(PAST_SHORT_MS)
        expect(await claim('', LONG_MS, another)).toBeUndefined()
      })

      test('a lease that is renewed for a while runs out after that', async () => {
        const held = await heldTask()
        await tasks.renew([held], SHORT_MS)
        await elapse(PAST_SHORT_MS)
        expect(await claimed(LONG_MS, another)).toMatchObject({ id: 't', lost: true })
      })

      test('a lease that ran out is renewed as long as nobody took the task over', async () => {
        const held = await heldTask('t', {}, SHORT_MS)
        await elapse(PAST_SHORT_MS)
        expect(await tasks.renew([held], LONG_MS)).toHaveLength(1)
        expect(await claim()).toBeUndefined()
      })

      test('a renewal says how those stand that are held, and leaves out the others', async () => {
        const { late, successor } = await takenOver()
        const ended = await heldTask('ended')
        await another.change('ended', {}, { status: 'cancelled' })
        const parked = await heldTask('parked')
        await park(parked)
        const changed = await heldTask('changed')
        const version = await another.change('changed', {}, { message: 'Hello.' })
        const held = [late, successor, ended, parked, changed, { id: 'unheard of', fence: 1 }]
        expect(await tasks.renew(held, LONG_MS)).toEqual([
          { id: 't', fence: successor.fence, version: successor.version },
          { id: 'changed', fence: changed.fence, version },
        ])
      })

      test('a renewal of nothing gives nothing', async () => {
        expect(await tasks.renew([], LONG_MS)).toEqual([])
      })

      test('a renewal is no change', async () => {
        const before = await made('t')
        const held = await claimed()
        await elapse(5)
        await tasks.renew([held], LONG_MS)
        expect(await tasks.read('t')).toEqual(before)
      })

      test.each([
        { journal: '[]', appended: [], whole: '[]' },
        { journal: '[]', appended: ['1'], whole: '[1]' },
        {
          journal: '["s","a",1,null]',
          appended: ['"s","b",2,{"x":[]}', '3'],
          whole: '["s","a",1,null,"s","b",2,{"x":[]},3]',
        },
        { journal: '[1]', appended: ['', '2', ''], whole: '[1,2]' },
        { journal: '[[1]]', appended: ['[2]'], whole: '[[1],[2]]' },
      ])('$journal with $appended appended is $whole', async ({ journal, appended, whole }) => {
        const held = await heldTask('t', { journal }, SHORT_MS)
        for (const entries of appended) expect(await tasks.append(held, entries)).toBe(true)
        await elapse(PAST_SHORT_MS)
        expect(await claimed(LONG_MS, another)).toMatchObject({ journal: whole })
      })

      test('entries stay in the order in which they were appended, however many there are', async () => {
        const held = await heldTask('t', { journal: '[0]' })
        const numbers = Array.from({ length: 300 }, (_, i) => i + 1)
        // Not one after the other: what is asked for first comes first.
        expect(new Set(await Promise.all(numbers.map((n) => tasks.append(held, String(n)))))).toEqual(new Set([true]))
        await tasks.change('t', { fence: held.fence }, { letGo: true, dueMs: 0 })
        expect((await claimed()).journal).toBe(JSON.stringify([0, ...numbers]))
      })

      test('what is appended is no change', async () => {
        const before = await made('t')
        const held = await claimed()
        await elapse(5)
        await tasks.append(held, '1')
        expect(await tasks.read('t')).toEqual(before)
        expect(await tasks.change('t', { version: before.version }, {})).toBeGreaterThan(before.version)
      })

      test('journals have nothing to do with each other', async () => {
        const one = await heldTask('one', { journal: '[1]' })
        const two = await heldTask('two', { journal: '[2]' })
        await tasks.append(one, '11')
        await tasks.append(two, '22')
        await tasks.append(one, '111')
        for (const held of [one, two]) await tasks.change(held.id, { fence: held.fence }, { letGo: true, dueMs: 0 })
        const both = [await claimed(), await claimed()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
        expect(both.map(({ journal }) => journal)).toEqual(['[1,11,111]', '[2,22]'])
      })
    })

    describe('a late writer', () => {
      test('under an old fence appends nothing (2)', async () => {
        const { late, successor } = await takenOver()
        expect(await tasks.append(late, '"late"')).toBe(false)
        expect(await another.append(successor, '"in time"')).toBe(true)
        await another.change('t', { fence: successor.fence }, { letGo: true, dueMs: 0 })
        expect((await claimed()).journal).toBe('["in time"]')
      })

      test('under an old fence changes nothing (2)', async () => {
        const { late, successor } = await takenOver()
        const before = await present('t')
        expect(await tasks.change('t', { fence: late.fence }, { message: 'Late.' })).toBeUndefined()
        expect(await tasks.change('t', { fence: late.fence }, { status: 'completed', outcome: '1' })).toBeUndefined()
        expect(await tasks.change('t', { fence: late.fence, version: late.version }, { letGo: true })).toBeUndefined()
        expect(await tasks.read('t')).toEqual(before)
        expect(await claim()).toBeUndefined()
        expect(await another.change('t', { fence: successor.fence }, { message: 'In time.' })).toBeDefined()
      })

      test('under an old fence renews nothing (2)', async () => {
        const late = await heldTask('t', {}, SHORT_MS)
        await elapse(PAST_SHORT_MS)
        await claimed(SHORT_MS, another)
        expect(await tasks.renew([late], LONG_MS)).toEqual([])
        await elapse(PAST_SHORT_MS)
        expect(await claimed()).toMatchObject({ id: 't' })
      })

      test('whose lease ran out goes on as long as nobody took the task over', async () => {
        const held = await heldTask('t', {}, SHORT_MS)
        await elapse(PAST_SHORT_MS)
        expect(await tasks.append(held, '1')).toBe(true)
        expect(await tasks.change('t', { fence: held.fence }, { message: 'Still here.' })).toBeDefined()
        expect(await claimed(LONG_MS, another)).toMatchObject({ journal: '[1]', message: 'Still here.', lost: true })
      })

      test('that has let go of the task holds it no longer', async () => {
        const held = await heldTask()
        await park(held)
        expect(await tasks.append(held, '1')).toBe(false)
        expect(await tasks.renew([held], LONG_MS)).toEqual([])
        expect(await tasks.change('t', { fence: held.fence }, { message: 'Late.' })).toBeUndefined()
        expect(await park(held)).toBeUndefined()
        await tasks.change('t', {}, { dueMs: 0 })
        expect(await claimed()).toMatchObject({ journal: '[]', message: undefined })
      })
    })

    describe('changing', () => {
      test('what is left out stays as it is, and what is given is there for everybody', async () => {
        const before = await made('t', { message: 'Begun.', ttlMs: LONG_MS })
        await elapse(5)
        const version = await tasks.change('t', {}, { status: 'input_required' })
        const after = await present('t', another)
        expect(after).toEqual({ ...before, status: 'input_required', version, updatedAt: after.updatedAt })
        expect(after.updatedAt).toBeGreaterThan(before.updatedAt)
        expect(after.version).toBeGreaterThan(before.version)

        const next = await another.change('t', {}, { status: 'working', message: 'Going on.', state: '{"round":2}' })
        expect(await tasks.read('t')).toMatchObject({
          status: 'working',
          message: 'Going on.',
          state: '{"round":2}',
          version: next,
        })
      })

      test('a message is taken away by giving none', async () => {
        await made('t', { message: 'Begun.' })
        await tasks.change('t', {}, { state: '2' })
        expect(await tasks.read('t')).toMatchObject({ message: 'Begun.' })
        await tasks.change('t', {}, { message: undefined })
        expect((await present('t')).message).toBeUndefined()
        await tasks.change('t', {}, { message: '' })
        expect((await present('t')).message).toBe('')
      })

      test('every change has a version of its own', async () => {
        await made('t')
        const versions = await Promise.all(
          Array.from({ length: 20 }, (_, i) => (i % 2 ? tasks : another).change('t', {}, { state: String(i) })),
        )
        expect(new Set(versions).size).toBe(20)
        expect(Math.max(...versions.map((version) => version ?? 0))).toBe((await present('t')).version)
      })

      test('of many that believe in one version exactly one makes its change', async () => {
        const { version } = await made('t')
        const versions = await Promise.all(
          Array.from({ length: 20 }, (_, i) => (i % 2 ? tasks : another).change('t', { version }, { state: `${i}` })),
        )
        const made1 = versions.flatMap((each, i) => (each === undefined ? [] : [`${i}`]))
        expect(made1).toHaveLength(1)
        expect(await tasks.read('t')).toMatchObject({ state: made1[0] })
      })

      test('whoever believes in another version changes nothing', async () => {
        const { version } = await made('t')
        const next = await tasks.change('t', { version }, { message: 'First.' })
        expect(await tasks.change('t', { version }, { message: 'Second.' })).toBeUndefined()
        expect(await tasks.change('t', { version: (next ?? 0) + 1 }, { message: 'Third.' })).toBeUndefined()
        expect(await tasks.read('t')).toMatchObject({ message: 'First.', version: next })
      })

      test('each belief that is given must hold', async () => {
        const held = await heldTask()
        const { fence, version } = held
        expect(await tasks.change('t', { fence, version: version + 1 }, { message: 'No.' })).toBeUndefined()
        expect(await tasks.change('t', { fence: fence + 1, version }, { message: 'No.' })).toBeUndefined()
        expect(await tasks.change('t', { fence, version }, { message: 'Yes.' })).toBeDefined()
        expect(await tasks.read('t')).toMatchObject({ message: 'Yes.' })
      })

      test('a journal that is given stands in place of the one there', async () => {
        const held = await heldTask('t', { journal: '[1]' })
        await tasks.append(held, '2')
        await tasks.change('t', { fence: held.fence }, { journal: '[3,4]' })
        await tasks.append(held, '5')
        await tasks.change('t', { fence: held.fence }, { letGo: true, dueMs: 0 })
        const again = await claimed()
        expect(again.journal).toBe('[3,4,5]')
        await tasks.change('t', { fence: again.fence }, { journal: '[]', letGo: true, dueMs: 0 })
        expect((await claimed()).journal).toBe('[]')
      })

      test.each(ENDS)('a task that is %s changes no more', async (status) => {
        const held = await heldTask('t', { journal: '[1]' })
        await tasks.append(held, '2')
        const version = await tasks.change(
          't',
          { fence: held.fence },
          { status, outcome: '"all of it"', message: 'Over.' },
        )
        const end = await present('t')
        expect(end).toMatchObject({ status, outcome: '"all of it"', message: 'Over.', version })

        expect(await another.change('t', {}, { status: 'working', dueMs: 0 })).toBeUndefined()
        expect(await tasks.change('t', { version: end.version }, { status: 'completed', outcome: '2' })).toBeUndefined()
        expect(await tasks.change('t', { fence: held.fence }, { letGo: true, dueMs: 0 })).toBeUndefined()
        expect(await tasks.append(held, '3')).toBe(false)
        expect(await tasks.renew([held], LONG_MS)).toEqual([])
        expect(await tasks.read('t')).toEqual(end)
      })

      test.each(ENDS)('a task that is %s is not due, then and later', async (status) => {
        await heldTask('t', {}, SHORT_MS)
        await tasks.change('t', {}, { status, dueMs: 0, letGo: true })
        await made('waiting')
        await another.change('waiting', {}, { status, dueMs: SHORT_MS })
        expect(await claim()).toBeUndefined()
        await elapse(PAST_SHORT_MS)
        expect(await claim()).toBeUndefined()
      })
    })

    describe('falling due', () => {
      test('a task that is parked is not due, however long one waits', async () => {
        const held = await heldTask('t', {}, SHORT_MS)
        await park(held)
        await elapse(PAST_SHORT_MS)
        expect(await claim()).toBeUndefined()
      })

      test('a parked task is due as soon as somebody says so', async () => {
        await park(await heldTask())
        await another.change('t', {}, { dueMs: 0, status: 'working' })
        expect(await claimed()).toMatchObject({ status: 'working', lost: false })
      })

      test('a task that waits falls due when its time has come', async () => {
        const held = await heldTask()
        await tasks.change('t', { fence: held.fence }, { letGo: true, dueMs: SHORT_MS })
        const early = await claim()
        await elapse(PAST_SHORT_MS)
        const task = early ?? (await claimed(LONG_MS, another))
        expect(task.lost).toBe(false)
      })

      test('a task that is to wait for long is not due', async () => {
        const held = await heldTask()
        await tasks.change('t', { fence: held.fence }, { letGo: true, dueMs: LONG_MS })
        await elapse(PAST_SHORT_MS)
        expect(await claim()).toBeUndefined()
      })

      test('a task that is due can be put off, and for ever', async () => {
        await made('later')
        await made('never')
        await tasks.change('later', {}, { dueMs: LONG_MS })
        await tasks.change('never', {}, { dueMs: null })
        expect(await claim()).toBeUndefined()
      })

      test('a held task that somebody else makes due stays held, and is due once its worker lets go', async () => {
        const held = await heldTask()
        await another.change('t', {}, { dueMs: 0, state: '{"answered":true}' })
        expect(await claim('', LONG_MS, another)).toBeUndefined()
        expect(await tasks.append(held, '1')).toBe(true)
        expect(await tasks.change('t', { fence: held.fence }, { letGo: true })).toBeDefined()
        expect(await claimed()).toMatchObject({ state: '{"answered":true}', journal: '[1]', lost: false })
      })

      test('a held task that somebody else puts off is due when its lease runs out', async () => {
        await heldTask('t', {}, SHORT_MS)
        await another.change('t', {}, { dueMs: null })
        await elapse(PAST_SHORT_MS)
        expect(await claimed()).toMatchObject({ lost: true })
      })

      test('its worker may say when a held task falls due before it lets go', async () => {
        const held = await heldTask()
        await tasks.change('t', { fence: held.fence }, { dueMs: null })
        await tasks.change('t', { fence: held.fence }, { letGo: true })
        expect(await claim()).toBeUndefined()
      })

      test('a task that is let go without a word is due as it was', async () => {
        const held = await heldTask()
        await tasks.change('t', { fence: held.fence }, { letGo: true })
        expect(await claimed()).toMatchObject({ id: 't', lost: false })
      })
    })

    describe('a ttl', () => {
      test('that has gone by leaves nothing for anybody, swept or not (4)', async () => {
        const held = await heldTask('held', { ttlMs: TTL_MS })
        const parked = await heldTask('parked', { ttlMs: TTL_MS })
        await park(parked)
        await made('due', { ttlMs: TTL_MS })
        await made('stays', { owner: 'bob', ttlMs: LONG_MS })
        await elapse(PAST_TTL_MS)
        for (const swept of [false, true]) {
          if (swept) await tasks.sweep()
          for (const id of ['held', 'parked', 'due']) {
            expect(await another.read(id)).toBeUndefined()
            expect(await tasks.change(id, {}, { message: 'Late.' })).toBeUndefined()
          }
          expect(await tasks.change('held', { fence: held.fence }, { letGo: true })).toBeUndefined()
          expect(await tasks.append(held, '1')).toBe(false)
          expect(await tasks.renew([held], LONG_MS)).toEqual([])
          expect(await tasks.list('ada', 10)).toEqual([])
        }
        expect(await claimed()).toMatchObject({ id: 'stays' })
        expect(await claim()).toBeUndefined()
      })

      test('is not prolonged by changes, and holds for tasks at their end too', async () => {
        await made('t', { ttlMs: TTL_MS })
        await tasks.change('t', {}, { status: 'completed', outcome: '1' })
        await elapse(PAST_TTL_MS)
        expect(await tasks.read('t')).toBeUndefined()
      })

      test('that has gone by leaves the id for another task', async () => {
        await made('t', { ttlMs: TTL_MS, journal: '[1]' })
        await elapse(PAST_TTL_MS)
        expect(await made('t', { owner: 'bob', ttlMs: null })).toMatchObject({ owner: 'bob', status: 'working' })
        expect(await claimed()).toMatchObject({ owner: 'bob', journal: '[]', lost: false })
      })

      test('a sweep takes what is over and nothing else, until nothing is left to take', async () => {
        await Promise.all(Array.from({ length: 25 }, (_, i) => made(`short ${i}`, { ttlMs: TTL_MS, journal: '[1,2]' })))
        await made('long', { ttlMs: LONG_MS })
        await made('for ever', { ttlMs: null })
        expect(await tasks.sweep()).toBe(0)
        await elapse(PAST_TTL_MS)
        let swept = 0
        for (let some = await tasks.sweep(); some > 0; some = await another.sweep()) swept += some
        expect(swept).toBe(25)
        expect(await tasks.list('ada', 50)).toHaveLength(2)
      })
    })

    describe('news', () => {
      test.each(['this', 'another'] as const)('of a task that is made reach %s instance', async (where) => {
        const ear = new Ear(where === 'this' ? tasks : another)
        await made('t')
        await ear.hears({ type: 'due' })
        ear.stop()
      })

      test.each(['this', 'another'] as const)('of a change reach %s instance', async (where) => {
        await park(await heldTask())
        const ear = new Ear(where === 'this' ? tasks : another)
        const version = await tasks.change('t', {}, { dueMs: 0 })
        await Promise.all([ear.hears({ type: 'changed', id: 't', version: version ?? 0 }), ear.hears({ type: 'due' })])
        ear.stop()
      })

      test('come when what they tell of is there to be read', async () => {
        await made('t')
        const read = new Promise<TaskRecord | undefined>((resolve) => {
          const stop = tasks.watch((news) => {
            if (news.type !== 'changed') return
            stop()
            resolve(tasks.read('t'))
          })
        })
        await tasks.change('t', {}, { message: 'Hello.' })
        expect(await read).toMatchObject({ message: 'Hello.' })
      })

      test('come to nobody that has stopped watching, and to the others still', async () => {
        let heard = 0
        const listener = (): void => void (heard += 1)
        const stopOne = tasks.watch(listener)
        stopOne()
        stopOne()
        const ear = new Ear(tasks)
        await made('t')
        await ear.hears({ type: 'due' })
        ear.stop()
        expect(heard).toBe(0)
      })

      test('come to the others when one that hears them fails', async () => {
        const stopFailing = tasks.watch(() => {
          throw new Error('This one cannot hear it.')
        })
        const ear = new Ear(tasks)
        expect(await made('t')).toMatchObject({ id: 't' })
        await ear.hears({ type: 'due' })
        ear.stop()
        stopFailing()
      })
    })
  })
}

/** Hears what a store tells. */
class Ear {
  readonly stop: () => void
  readonly #heard = new Map<string, Gate<void>>()

  constructor(tasks: TaskStore) {
    this.stop = tasks.watch((news) => this.#gateOf(news).open())
  }

  /** Settles when such news comes, or at once where it has come already. */
  hears(news: News): Promise<void> {
    return this.#gateOf(news).promise
  }

  #gateOf(news: News): Gate<void> {
    const text = news.type === 'due' ? 'due' : JSON.stringify([news.id, news.version])
    const there = this.#heard.get(text) ?? gate()
    this.#heard.set(text, there)
    return there
  }
}

function ids(list: readonly TaskRecord[]): string[] {
  return list.map(({ id }) => id)
}
