// Who is calling: tokens of an OAuth issuer, scopes that a tool needs, and tools that others do not even see.
import { rally } from 'mcp-rally'
import { bearer } from 'mcp-rally/bearer'

export const app = rally({ name: 'payroll', version: '1.0.0' })

app.tool('my_salary', { scopes: ['salary:read'] }, (_args, io) => `The salary of ${io.caller?.principal}`)

app.tool(
  'raise',
  { scopes: ['salary:write'], visible: ({ caller }) => caller?.claims?.['role'] === 'manager' },
  async (_args, io) =>
    // Only the caller who began the flow can continue it.
    (await io.confirm('sure', 'Raise all salaries?')) ? 'Raised.' : 'Not raised.',
)

/** Pass it to `serve(app, { authenticate })`. A refusal tells clients where to get a token. */
export const authenticate = (issuer: string, server: string) =>
  bearer({ issuer, audience: server, jwks: new URL('/jwks', issuer).href, claims: ['role'] })
