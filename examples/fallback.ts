// One tool for every client: it asks the user if the client supports that, and else takes the answer as an argument.
import { rally } from 'mcp-rally'
import { z } from 'zod'

export const app = rally({ name: 'branches', version: '1.0.0' })

app.tool(
  'delete_branch',
  {
    description:
      'Delete a branch. Asks the user first, if the client can. Leave "confirmed" out unless the tool asks for it.',
    input: z.object({
      branch: z.string(),
      confirmed: z.boolean().optional().describe('Only if the tool asks for it: what the user said'),
    }),
  },
  async ({ branch, confirmed }, io) => {
    // The capabilities that the client declared when the call began. They are the same in every pass.
    const sure = io.can('elicitation.form') ? await io.confirm('sure', `Delete ${branch}?`) : confirmed
    if (sure === undefined) return `Ask the user whether to delete ${branch}, and call again with "confirmed".`
    if (!sure) return `Kept ${branch}.`
    await io.step('delete', () => console.error(`deleting ${branch}`))
    return `Deleted ${branch}.`
  },
)
