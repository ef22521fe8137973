// What every Store must do: the contracts of its three parts. Each store runs this suite.
// The numbers in the tests of tasks are those of the invariants in src/store/tasks.ts.
import { afterEach, beforeEach, describe } from 'vitest'
import type { Store, TaskStore } from 'mcp-rally'
import { mailboxContract } from '../mailbox/contract.ts'
import { onceStoreContract } from '../once/contract.ts'
import type { Hands } from './contract/hands.ts'
import { handsOn } from './contract/hands.ts'
import { changing } from './contract/changing.ts'
import { claiming } from './contract/claiming.ts'
import { fallingDue } from './contract/falling-due.ts'
import { groups } from './contract/groups.ts'
import { holding } from './contract/holding.ts'
import { lateWriting } from './contract/late-writing.ts'
import { listing } from './contract/listing.ts'
import { making } from './contract/making.ts'
import { operations } from './contract/operations.ts'
import { telling } from './contract/telling.ts'
import { ttl } from './contract/ttl.ts'
import { usage } from './contract/usage.ts'
import { partOf, type Open, type UnderTest } from './under-test.ts'

export { newTask } from './contract/hands.ts'

export function storeContract(name: string, open: Open<Store>): void {
  taskStoreContract(name, partOf('tasks', open))
  onceStoreContract(name, partOf('once', open))
  mailboxContract(name, partOf('mailbox', open))
}

function taskStoreContract(name: string, open: Open<TaskStore>): void {
  describe(`the contract of a TaskStore: ${name}`, () => {
    let opened: UnderTest<TaskStore>
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
    groups(() => hands)
    ttl(() => hands)
    telling(() => hands)
    usage(() => hands)
    operations(() => hands)
  })
}
