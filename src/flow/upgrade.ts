// A flow that was begun under another version of its handler: its answers carry over, its steps do not.
import type { Carry } from './carry.ts'
import type { AnswerPayload, Journal } from './journal.ts'

/** Answers alone are held under their own pins: the new version takes those whose question it asks in the same words. */
export function carryOver(journal: Journal, { open, held }: Carry): Carry {
  const carried: Carry = { open, held: new Map(held) }
  for (let i = 0; i < journal.length; i += 1) {
    const entry = journal.at(i)
    if (entry?.tag !== 'a') continue
    const [pin, asked, action, value] = entry.payload as AnswerPayload
    carried.held.set(entry.key, { pin, asked, answer: { action, value } })
  }
  return carried
}
