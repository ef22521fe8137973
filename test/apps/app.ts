// An app with a tool for everything that may be asked in a page. It counts its steps.
import type { Rally, RallyOptions } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { z } from 'zod'

export const KEYS = ['a secret of the tests of apps, long enough']

export interface Steps {
  plan: number
  ship: number
}

/** Every kind of field that a form may have. */
export const ALL_FIELDS = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Name', minLength: 2, maxLength: 40 },
    email: { type: 'string', title: 'E-mail', format: 'email', description: 'Where the invoice goes' },
    site: { type: 'string', title: 'Web site', format: 'uri' },
    day: { type: 'string', title: 'Day', format: 'date', default: '2026-12-24' },
    at: { type: 'string', title: 'Exact time', format: 'date-time', default: '2026-12-24T18:00:00Z' },
    story: { type: 'string', title: 'Story', maxLength: 2000 },
    count: { type: 'integer', title: 'Count', minimum: 1, maximum: 9, default: 3 },
    ratio: { type: 'number', title: 'Ratio', minimum: 0, maximum: 1 },
    news: { type: 'boolean', title: 'Newsletter', default: false },
    agree: { type: 'boolean', title: 'I agree' },
    size: { type: 'string', title: 'Size', enum: ['s', 'm', 'l'], default: 'm' },
    city: {
      type: 'string',
      title: 'City',
      oneOf: ['Ams', 'Ber', 'Cph', 'Dub', 'Edi', 'Fir', 'Gva'].map((code) => ({ const: code, title: `${code} city` })),
    },
    extras: {
      type: 'array',
      title: 'Extras',
      minItems: 1,
      maxItems: 2,
      items: {
        anyOf: [
          { const: 'wifi', title: 'Wi-Fi' },
          { const: 'park', title: 'Parking' },
          { const: 'food', title: 'Breakfast' },
        ],
      },
      default: ['wifi'],
    },
  },
  required: ['name', 'email', 'count', 'agree', 'city', 'extras'],
} as const

export function makeApp(options: Partial<RallyOptions> = {}): { app: Rally; steps: Steps; visited: () => void } {
  const steps: Steps = { plan: 0, ship: 0 }
  let isVisited = false
  const app = rally({
    name: 'deployer',
    version: '1.0.0',
    keys: KEYS,
    apps: { waitMs: 5_000 },
    logger: quiet,
    ...options,
  })
  app.tool(
    'deploy',
    {
      description: 'Deploys a service to an environment',
      input: z.object({ env: z.string() }),
      output: z.object({ sha: z.string(), region: z.string() }),
      asks: {
        go: z.object({
          confirm: z.boolean().meta({ title: 'Deploy now?' }),
          note: z.string().optional().meta({ title: 'Note for the log' }),
        }),
        where: z.object({ region: z.enum(['eu-north', 'us-east']).meta({ title: 'Region' }) }),
      },
    },
    async ({ env }, io) => {
      const sha = await io.step('plan', () => `c0ffee${(steps.plan += 1)}`)
      const { confirm, note } = await io.ask('go', `Deploy ${sha} to ${env}?`)
      if (!confirm) return { sha, region: 'none' }
      const { region } = await io.ask(
        'where',
        `Where should ${sha} run?${note === undefined ? '' : ` (note: ${note})`}`,
      )
      await io.step('ship', () => (steps.ship += 1))
      return { sha, region }
    },
  )
  app.tool('everything', { description: 'Asks for one of everything', asks: { all: ALL_FIELDS } }, async (_args, io) =>
    JSON.stringify(await io.ask('all', 'Please fill in all of this <b>carefully</b>.')),
  )
  app.tool('trip', { description: 'Plans a trip', apps: true }, async (_args, io) => {
    const [{ city }, who, train] = await Promise.all([
      io.ask('where', 'Where would you like to go?', z.object({ city: z.string() })),
      io.choose('who', 'Who is travelling?', ['one', 'two', 'a family']),
      io.confirm('train', 'By train?'),
    ])
    return `${who} to ${city}, ${train ? 'by train' : 'some other way'}`
  })
  app.tool('connect', { description: 'Connects an account', apps: true }, async (_args, io) => {
    const address = 'https://bank.example/authorize?account=1'
    await io.visit('sign-in', 'Sign in at the bank, please.', address, { done: () => isVisited, waitMs: 50 })
    return 'Connected.'
  })
  app.tool('summarise', { description: 'Needs the model', apps: true }, async (_args, io) => {
    const { content } = await io.sample('summary', {
      messages: [{ role: 'user', content: { type: 'text', text: 'Say hi.' } }],
      maxTokens: 10,
    })
    return JSON.stringify(content)
  })
  app.tool(
    'pay',
    { description: 'Asks only for more than 100', input: z.object({ amount: z.number() }), apps: true },
    async ({ amount }, io) => {
      if (amount > 100 && !(await io.confirm('big', `Pay ${amount}?`))) return 'Not paid.'
      return `Paid ${amount}.`
    },
  )
  app.tool(
    'provision',
    { description: 'Makes a machine', input: z.object({ name: z.string() }), apps: true },
    async ({ name }, io) => {
      if (!(await io.confirm('cost', `${name} costs 4 EUR a day. Go ahead?`))) return 'Left as it was.'
      await io.detach()
      await io.step('create', () => 'created')
      const region = await io.choose('region', `Where should ${name} run?`, ['eu-north', 'us-east'])
      return `${name} runs in ${region}.`
    },
  )
  app.tool('can', { description: 'Says what it may ask', apps: true }, (_args, io) =>
    JSON.stringify([io.can('elicitation.form'), io.can('sampling'), io.can('roots')]),
  )
  app.tool('unlinked', { description: 'Asks without a page' }, async (_args, io) =>
    String(await io.confirm('sure', 'Sure?')),
  )
  app.tool('ping', { description: 'Asks nothing' }, () => 'pong')
  return { app, steps, visited: () => (isVisited = true) }
}

const quiet = { warn() {}, error() {} }
