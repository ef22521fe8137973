// What reaches those that watch.
import { describe, expect, test } from 'vitest'
import type { TaskEvent, TaskRecord, TaskStore } from '../../../src/store/tasks.ts'
import type { Gate } from '../../../src/testing/manual-scheduler.ts'
import { gate } from '../../../src/testing/manual-scheduler.ts'
import type { Hands } from './hands.ts'

export function telling(hands: () => Hands): void {
  describe('news', () => {
    test.each(['this', 'another'] as const)('of a task that is made reach %s instance', async (where) => {
      const { tasks, another, made } = hands()
      const ear = new Ear(where === 'this' ? tasks : another)
      await made('t')
      await ear.hears({ type: 'due' })
      ear.stop()
    })

    test.each(['this', 'another'] as const)('of a change reach %s instance', async (where) => {
      const { tasks, another, heldTask, park } = hands()
      await park(await heldTask())
      const ear = new Ear(where === 'this' ? tasks : another)
      const version = await tasks.change('t', {}, { dueMs: 0 })
      await Promise.all([ear.hears({ type: 'changed', id: 't', version: version ?? 0 }), ear.hears({ type: 'due' })])
      ear.stop()
    })

    test('come when what they tell of is there to be read', async () => {
      const { tasks, made } = hands()
      const { version } = await made('t')
      const read = new Promise<TaskRecord | undefined>((resolve) => {
        const stop = tasks.watch((news) => {
          if (news.type !== 'changed' || news.version === version) return
          stop()
          resolve(tasks.read('t'))
        })
      })
      await tasks.change('t', {}, { message: 'Hello.' })
      expect(await read).toMatchObject({ message: 'Hello.' })
    })

    test('come after the caller of the change has learned of it', async () => {
      const { tasks, made } = hands()
      await made('t')
      const heard: string[] = []
      const ear = new Promise<void>((resolve) => {
        const stop = tasks.watch(({ type }) => {
          if (type !== 'changed') return
          stop()
          heard.push('watcher')
          resolve()
        })
      })
      // As a worker does, which frees a place a few promises later.
      const caller = async (): Promise<unknown> => tasks.change('t', {}, { message: 'Hello.' })
      await caller().then(() => heard.push('caller'))
      await ear
      expect(heard).toEqual(['caller', 'watcher'])
    })

    test('come to nobody that has stopped watching, and to the others still', async () => {
      const { tasks, made } = hands()
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
      const { tasks, made } = hands()
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
}

/** Hears what a store tells. */
class Ear {
  readonly stop: () => void
  readonly #heard = new Map<string, Gate<void>>()

  constructor(tasks: TaskStore) {
    this.stop = tasks.watch((news) => this.#gateOf(news).open())
  }

  /** Settles when such news comes, or at once where it has come already. */
  hears(news: TaskEvent): Promise<void> {
    return this.#gateOf(news).promise
  }

  #gateOf(news: TaskEvent): Gate<void> {
    const text = news.type === 'due' ? 'due' : JSON.stringify([news.id, news.version])
    const there = this.#heard.get(text) ?? gate()
    this.#heard.set(text, there)
    return there
  }
}
