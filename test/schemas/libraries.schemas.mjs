// Tools whose arguments are schemas of the libraries in package.json beside this file: each works, or says what to do.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { describe, expect, test } from 'vitest'

const { resolve } = createRequire(import.meta.url)
const load = (name) => import(pathToFileURL(resolve(name)).href)

const zod3 = await load('zod-3')
const zod3v4 = await load('zod-3/v4')
const zod3mini = await load('zod-3/v4-mini')
const zod41 = await load('zod-4.1')
const effect3 = await load('effect-3')
const effect4 = await load('effect-4')
const { Type } = await load('typebox')
const { Type: Type034 } = await load('@sinclair/typebox')
const { type: arktype } = await load('arktype-2.1.20')

const ofEffect3 = effect3.Schema.Struct({ env: effect3.Schema.String })
const ofEffect4 = effect4.Schema.Struct({ env: effect4.Schema.String })
const of41 = zod41.z.object({ env: zod41.z.string() })

const WORKS = [
  { library: 'TypeBox 1', input: Type.Object({ env: Type.String(), times: Type.Optional(Type.Integer()) }) },
  {
    library: 'TypeBox 0.34',
    input: Type034.Object({ env: Type034.String(), times: Type034.Optional(Type034.Integer()) }),
  },
  {
    library: 'effect 4, wrapped',
    input: effect4.Schema.toStandardJSONSchemaV1(effect4.Schema.toStandardSchemaV1(ofEffect4)),
  },
  { library: 'effect 3, as JSON Schema', input: effect3.JSONSchema.make(ofEffect3) },
  { library: 'zod 4.1, as JSON Schema', input: zod41.z.toJSONSchema(of41) },
  {
    library: 'zod/v4 of zod 3.25, as JSON Schema',
    input: zod3v4.z.toJSONSchema(zod3v4.z.object({ env: zod3v4.z.string() })),
  },
]

describe.each(WORKS)('$library', ({ input }) => {
  test('describes and checks the arguments of a tool', async () => {
    const app = rally({ name: 'schemas', version: '1.0.0' })
    app.tool('deploy', { input }, ({ env }) => `Deployed to ${env}.`)
    const client = await connect(app)
    const [tool] = await client.listTools()
    expect(tool?.inputSchema).toMatchObject({ type: 'object', properties: { env: { type: 'string' } } })
    expect(await client.callTool('deploy', { env: 'prod' })).toMatchObject({ content: [{ text: 'Deployed to prod.' }] })
    const wrong = await client.callTool('deploy', { env: 1 })
    expect(wrong.isError).toBe(true)
    expect(wrong.content[0].text).toMatch(/env/)
    await client.close()
  })
})

const REFUSED = [
  { library: 'zod 3', input: zod3.z.object({ env: zod3.z.string() }), says: /of zod 3, .* Update zod to 4\.2/ },
  {
    library: 'zod/v4 of zod 3.25',
    input: zod3v4.z.object({ env: zod3v4.z.string() }),
    says: /of zod 4\.0\.0, .* Update zod to 4\.2 or later, or pass z\.toJSONSchema\(schema\)/,
  },
  {
    library: 'zod/v4-mini of zod 3.25',
    input: zod3mini.object({ env: zod3mini.string() }),
    says: /of zod 4\.0\.0, .* Update zod to 4\.2 or later, or pass z\.toJSONSchema\(schema\)/,
  },
  { library: 'zod 4.1', input: of41, says: /of zod 4\.1\.13, .* Update zod to 4\.2 or later/ },
  { library: 'effect 3', input: ofEffect3, says: /of effect .* With effect 3 pass JSONSchema\.make/ },
  {
    library: 'effect 3 as a Standard Schema',
    input: effect3.Schema.standardSchemaV1(ofEffect3),
    says: /of effect .* With effect 3 pass JSONSchema\.make/,
  },
  { library: 'effect 4', input: ofEffect4, says: /of effect .* With effect 4 wrap it: Schema\.toStandardJSONSchemaV1/ },
  {
    library: 'effect 4, half wrapped',
    input: effect4.Schema.toStandardJSONSchemaV1(ofEffect4),
    says: /of effect .* With effect 4 wrap it: Schema\.toStandardJSONSchemaV1/,
  },
  { library: 'arktype 2.1.20', input: arktype({ env: 'string' }), says: /Update arktype to 2\.1\.28 or later/ },
  {
    library: 'TypeBox 0.34 with a type that JSON lacks',
    input: Type034.Object({ on: Type034.Date() }),
    says: /the schema cannot be used: .*type/,
  },
]

test.each(REFUSED)('$library: the error says what to do', ({ input, says }) => {
  const app = rally({ name: 'schemas', version: '1.0.0' })
  expect(() => app.tool('deploy', { input }, () => 'Deployed.')).toThrow(says)
})
