// One handler, whatever the client can show: forms of its own, a form in an MCP App, or a page of this server by a link.
import type { Rally, RallyOptions } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { z } from 'zod'

export interface RefundsOptions extends Partial<RallyOptions> {
  /** Where users reach the page, such as 'https://refunds.example.com/ask'. */
  readonly url: string
  /** The user of a session of your web site; `undefined` if nobody is logged in. */
  readonly userOf: (cookie: string | undefined) => string | undefined
}

export function refundsApp({ url, userOf, ...options }: RefundsOptions): Rally {
  const app = rally({
    name: 'refunds',
    version: '1.0.0',
    // In hosts that show MCP Apps, such as claude.ai.
    apps: true,
    // For all clients that have neither. The model sees the link, so the login says who may answer.
    page: {
      url,
      identify: ({ header, url: link }) =>
        userOf(header('cookie')) ?? { redirect: `/login?next=${encodeURIComponent(link)}` },
    },
    ...options,
  })

  app.tool(
    'refund',
    {
      description: 'Refund an order, once the user has confirmed it',
      input: z.object({ order: z.string(), amount: z.number().positive() }),
      asks: {
        sure: z.object({
          confirm: z.boolean().meta({ title: 'Refund it?' }),
          reason: z.enum(['damaged', 'late', 'other']).meta({ title: 'Reason' }),
        }),
      },
    },
    async ({ order, amount }, io) => {
      const { confirm, reason } = await io.ask('sure', `Refund ${amount} EUR for order ${order}?`)
      if (!confirm) return `Order ${order} was not refunded.`
      await io.step('pay', () => console.error(`paying ${amount} EUR back`))
      return `Refunded ${amount} EUR for order ${order} (${reason}).`
    },
  )
  return app
}
