// Rounds in the protocol's own shape: the handler reads the answers of this round, and returns what to ask next.
import { elicit, inputRequired, rally } from 'mcp-rally'
import { z } from 'zod'

export const app = rally({ name: 'shopping', version: '1.0.0' })

const State = z.object({ items: z.array(z.string()) })
const Item = z.object({ item: z.string().describe('Leave it empty to finish').default('') })

app.tool('list', {}, (_args, io) => {
  const { items } = io.responses.state(State) ?? { items: [] }
  const answer = io.responses.accepted('next', Item)
  if (answer?.item === '') return items.length === 0 ? 'Nothing to buy.' : `To buy: ${items.join(', ')}`
  const all = answer === undefined ? items : [...items, answer.item]
  return inputRequired({ inputRequests: { next: elicit(`Item ${all.length + 1}?`, Item) }, state: { items: all } })
})
