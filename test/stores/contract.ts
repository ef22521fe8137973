// What every TaskStore must do. Each store runs this suite. The numbers are those of the invariants in src/store/tasks.ts.
import { afterEach, beforeEach, describe } from 'vitest'
import type { Hands, TasksUnderTest } from './contract/hands.ts'
import { handsOn } from './contract/hands.ts'
import { changing } from './contract/changing.ts'
import { claiming } from './contract/claiming.ts'
import { fallingDue } from './contract/falling-due.ts'
import { holding } from './contract/holding.ts'
import { lateWriting } from './contract/late-writing.ts'
import { listing } from './contract/listing.ts'
import { making } from './contract/making.ts'
import { telling } from './contract/telling.ts'
import { ttl } from './contract/ttl.ts'

export { newTask } from './contract/hands.ts'

export function taskStoreContract(name: string, open: () => TasksUnderTest | Promise<TasksUnderTest>): void {
  describe(`the contract of a TaskStore: ${name}`, () => {
    let opened: TasksUnderTest
    let hands: Hands

    beforeEach(async () => {
      opened = await open()
      hands = handsOn(opened)
    })
    afterEach(() => opened.close?.())

    making(() => hands)
    listing(() => hands)
    claiming(() => hands)
    holding(() => hands)
    lateWriting(() => hands)
    changing(() => hands)
    fallingDue(() => hands)
    ttl(() => hands)
    telling(() => hands)
  })
}
