// One tool for every client: it asks where the client can be asked, and takes the answer as an argument where it cannot.
import type { Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { z } from 'zod'

export function fallbackApp(): Rally {
  const app = rally({ name: 'branches', version: '1.0.0' })

  app.tool(
    'delete_branch',
    {
      description:
        'Delete a branch. Asks the user first, if the client can; leave "confirmed" out unless it is asked for.',
      input: z.object({
        branch: z.string(),
        confirmed: z.boolean().optional().describe('Only where the tool asks for it: what the user said'),
      }),
    },
    async ({ branch, confirmed }, io) => {
      // What the client declared when the call began: the same on every pass.
      const sure = io.can('elicitation.form') ? await io.confirm('sure', `Delete ${branch}?`) : confirmed
      if (sure === undefined) return `Ask the user whether to delete ${branch}, and call again with "confirmed".`
      if (!sure) return `Kept ${branch}.`
      await io.step('delete', () => console.error(`deleting ${branch}`))
      return `Deleted ${branch}.`
    },
  )
  return app
}
