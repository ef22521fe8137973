// The client under test: does what a scenario of the suite wants a client to do. The suite gives the scenario's name and
// what else belongs to it in the environment, and the address of its server as the last argument.
import { connect } from 'mcp-rally/client'
import { oauthFor } from './client-oauth.mjs'

/** Also where the suite looks for nothing but a capability: those that are declared follow from the answerers. */
const answerers = {
  onElicit: ({ form }) => ({ action: 'accept', content: contentFor(form) }),
  onSample: () => ({ role: 'assistant', model: 'a-model', content: { type: 'text', text: 'Yes.' } }),
  onRoots: () => [],
}

/** The defaults of a form, as a user leaves it, with every question without a default answered by yes. */
function contentFor({ properties }) {
  return Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, field.default ?? true]))
}

const SCENARIOS = {
  initialize: (client) => client.listTools(),
  'elicitation-sep1034-client-defaults': (client) => client.callTool('test_client_elicitation_defaults'),
  'sse-retry': (client) => client.callTool('test_reconnection'),
  tools_call: async (client) => {
    await client.listTools()
    await client.callTool('add_numbers', { a: 5, b: 3 })
  },
  'sep-2640-client-no-prefetch': (client) => client.listSkills(),
  'sep-2640-client-verify-digest': loadSkill,
  'sep-2640-client-verify-size': loadSkill,
  'sep-2640-client-verify-frontmatter': loadSkill,
  'request-metadata': (client) => client.listTools(),
  'sep-2322-client-request-state': async (client) => {
    await client.listTools()
    for await (const round of client.rounds({ tool: 'test_mrtr_echo_state' })) {
      if (round.kind === 'asks') await client.callTool('test_mrtr_unrelated')
    }
    await client.callTool('test_mrtr_no_state')
    await client.callTool('test_mrtr_no_result_type')
  },
  'http-standard-headers': async (client) => {
    for (const { name } of await client.listTools()) await client.callTool(name)
    for (const { uri } of await client.listResources()) await client.readResource(uri)
    for (const { name } of await client.listPrompts()) await client.getPrompt(name)
  },
  'http-custom-headers': async (client, { toolCalls }) => {
    await client.listTools()
    for (const { name, arguments: args } of toolCalls) await client.callTool(name, args)
  },
  'http-invalid-tool-headers': async (client) => {
    for (const { name } of await client.listTools()) await client.callTool(name, { region: 'eu' })
  },
  'json-schema-ref-no-deref': (client) => client.listTools(),
  'json-schema-2020-12-preservation': async (client) => {
    const tools = await client.listTools()
    const { inputSchema: schema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool')
    await client.callTool('json_schema_echo', { schema })
  },
}

/** The server sends a SKILL.md that is not the listed one, so nothing further of the skill may be read. */
async function loadSkill(client) {
  const [skill] = await client.listSkills()
  await client.readSkill(skill)
  await client.readSkill(skill, 'references/FORMS.md')
}

const name = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}')
const url = process.argv.at(-1)

const isAuth = name.startsWith('auth/')
if (!isAuth && !Object.hasOwn(SCENARIOS, name)) throw new Error(`There is no scenario ${JSON.stringify(name)} here.`)
const client = await connect(url, { ...answerers, ...(isAuth && { oauth: await oauthFor(name, context) }) })
try {
  await (isAuth ? callAll(client) : SCENARIOS[name](client, context))
} finally {
  await client.close()
}

/** What a scenario of authorization wants happens in between. */
async function callAll(authorized) {
  for (const tool of await authorized.listTools()) await authorized.callTool(tool.name, {})
}
