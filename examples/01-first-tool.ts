// A tool that asks its user in the middle of a call. Run it: npx mcp-rally dev 01-first-tool.ts
import { rally } from 'mcp-rally'
import { z } from 'zod'

export const app = rally({ name: 'greeter', version: '1.0.0' })

app.tool(
  'greet',
  {
    description: 'Greets the user by name',
    input: z.object({ greeting: z.string().default('Hello') }),
    asks: { who: z.object({ name: z.string() }) },
  },
  async ({ greeting }, io) => {
    const { name } = await io.ask('who', 'What is your name?')
    return `${greeting}, ${name}!`
  },
)
