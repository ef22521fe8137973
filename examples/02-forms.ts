// Every way to ask: a form of all kinds of fields, a yes or no, a choice, and several questions in one round.
import { rally } from 'mcp-rally'
import { z } from 'zod'

export const app = rally({ name: 'travel', version: '1.0.0' })

const Traveller = z.object({
  name: z.string().min(2).describe('As in the passport'),
  email: z.email(),
  birthday: z.iso.date(),
  bags: z.int().min(0).max(3).default(1),
  vegetarian: z.boolean().default(false),
  seat: z.enum(['window', 'aisle']),
  extras: z.array(z.enum(['lounge', 'wifi'])).default([]),
})

app.tool('book', { asks: { traveller: Traveller } }, async (_args, io) => {
  // Asked together, so the user sees all three at once.
  const [traveller, travelClass, insured] = await Promise.all([
    io.ask('traveller', 'Who is travelling?'),
    io.choose('class', 'Which class?', [
      { value: '2', title: 'Second' },
      { value: '1', title: 'First, for 40 EUR' },
    ]),
    io.confirm('insurance', 'Add insurance for 9 EUR?'),
  ])
  const price = 60 + (travelClass === '1' ? 40 : 0) + (insured ? 9 : 0) + traveller.bags * 5
  // Asked alone, because it depends on the answers.
  if (!(await io.confirm('pay', `Pay ${price} EUR?`))) return 'Not booked.'
  return `Booked for ${traveller.name}, ${traveller.seat} seat, ${price} EUR`
})
