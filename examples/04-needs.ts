// Values that the model must not invent are declared, and resolved before the handler runs.
import { rally, resolver } from 'mcp-rally'
import { z } from 'zod'

export const app = rally({ name: 'bookshop', version: '1.0.0' })

const STOCK: Readonly<Record<string, number>> = { Emma: 2 }

const stock = resolver('stock', { run: ({ title }: { title: string }) => ({ copies: STOCK[title] ?? 0 }) })

/** Asks only if the book is not there. */
const backorder = resolver('backorder', {
  needs: { stock },
  asks: { ok: z.object({ confirm: z.boolean() }) },
  run: async (_args: { title: string }, io, { stock: { copies } }) =>
    copies > 0 ? { confirm: true } : io.ask('ok', 'It is not in stock. Order it in?'),
})

app.tool(
  'order',
  { input: z.object({ title: z.string() }), needs: { stock, backorder } },
  ({ title }, _io, { stock: { copies }, backorder: { confirm } }) =>
    confirm ? `Ordered ${title}, ${copies} in stock` : 'Nothing was ordered.',
)
