// The tools of the demo: one for each kind of question.
import { setTimeout } from 'node:timers/promises'
import { rally, type Rally, type RallyOptions } from 'mcp-rally'
import { z } from 'zod'
import { provisioning } from './provision.ts'

/** `workMs` is how long each piece of simulated work takes. */
export function demoApp(options: Partial<RallyOptions> = {}, workMs = 700): Rally {
  const app = rally({ name: 'rally-demo', version: '1.0.0', ...options })

  app.tool(
    'deploy',
    {
      description: 'Deploy a service to an environment, once the user has confirmed the plan',
      input: z.object({ env: z.string() }),
      asks: { confirm: z.object({ confirm: z.boolean().describe('Go ahead?') }) },
    },
    async ({ env }, io) => {
      const plan = await io.step('plan', () => ({ sha: io.uuid('sha').slice(0, 7) }))
      const { confirm } = await io.ask('confirm', `Deploy ${plan.sha} to ${env}?`)
      if (!confirm) return 'Left as it was.'
      await io.step('ship', ({ idempotencyKey }) => ({ shipped: plan.sha, idempotencyKey }))
      return `Deployed ${plan.sha} to ${env}`
    },
  )

  app.tool(
    'update_work_item',
    {
      description: 'Set the state of a work item. Resolving asks why, and a duplicate asks of what',
      input: z.object({ id: z.number().int(), state: z.enum(['Active', 'Resolved', 'Closed']) }),
      output: z.object({
        id: z.number(),
        state: z.string(),
        resolution: z.string().optional(),
        duplicateOf: z.number().optional(),
      }),
      asks: {
        resolution: z.object({ resolution: z.enum(['Fixed', "Won't Fix", 'Duplicate', 'By Design']) }),
        original: z.object({ duplicateOf: z.number().int().min(1).describe('Number of the original work item') }),
      },
    },
    async ({ id, state }, io) => {
      if (state !== 'Resolved') return { id, state }
      const { resolution } = await io.ask('resolution', `How was work item ${id} resolved?`)
      if (resolution !== 'Duplicate') return { id, state, resolution }
      const { duplicateOf } = await io.ask('original', `Which work item is ${id} a duplicate of?`)
      return { id, state, resolution, duplicateOf }
    },
  )

  app.tool(
    'trip',
    {
      description: 'Plan a trip from three questions that the user is asked together',
      asks: {
        where: z.object({ city: z.string().min(1) }),
        when: z.object({ month: z.enum(['May', 'June', 'September']) }),
        how: z.object({ transport: z.enum(['train', 'bicycle']), luggage: z.boolean().default(false) }),
      },
    },
    async (_args, io) => {
      const [{ city }, { month }, { transport, luggage }] = await Promise.all([
        io.ask('where', 'Where would you like to go?'),
        io.ask('when', 'In which month?'),
        io.ask('how', 'How would you like to travel?'),
      ])
      return `To ${city} in ${month} by ${transport}, ${luggage ? 'with' : 'without'} luggage`
    },
  )

  app.tool(
    'summarize',
    { description: "Summarize a text with the client's own model", input: z.object({ text: z.string().min(1) }) },
    async ({ text }, io) => {
      const { content } = await io.sample('summary', {
        systemPrompt: 'Summarize in one sentence.',
        messages: [{ role: 'user', content: { type: 'text', text } }],
        maxTokens: 200,
      })
      const blocks = Array.isArray(content) ? content : [content]
      return blocks.map((block) => (block.type === 'text' ? block.text : `(${block.type})`)).join('\n')
    },
  )

  app.tool(
    'long_sum',
    {
      description: 'Add the numbers from 1 to n, one recorded step each',
      input: z.object({ n: z.number().int().min(1).max(500) }),
    },
    async ({ n }, io) => {
      let sum = 0
      for (let i = 1; i <= n; i += 1) {
        // A millisecond simulates work.
        sum += await io.step(`add[${i}]`, () => setTimeout(1, i))
        io.progress(i, n)
      }
      return String(sum)
    },
  )

  provisioning(app, workMs)
  return app
}
