// Our server's handlers, the only ones there are: every client, over every wire and in every age of the protocol, is served
// by these.
import { Declined, rally } from 'mcp-rally'
import { z } from 'zod'
import { openPage } from './page.mjs'

export async function matrixApp() {
  const app = rally({ name: 'ours', version: '1.0.0', keys: ['a secret of the matrix, which is long enough'] })
  const page = await openPage()

  app.tool('deploy', { input: z.object({ env: z.string() }), asks: { sure } }, async ({ env }, io) => {
    const { action, content } = await io.elicit('sure', `Deploy to ${env}?`)
    return action === 'accept' ? `Deployed to ${env}: ${content.confirm}` : `The user said ${action}.`
  })

  app.tool('sign_in', {}, async (_args, io) => {
    try {
      await io.visit('page', 'Please sign in.', page.urlFor, { done: page.wasVisited, waitMs: 0 })
      return 'Signed in.'
    } catch (error) {
      if (error instanceof Declined) return `The user said ${error.action}.`
      throw error
    }
  })

  app.tool('summarize', { input: z.object({ text: z.string() }) }, async ({ text }, io) => {
    const { model, content } = await io.sample('summary', prompt(`Sum up: ${text}`))
    return `${model}: ${content.text}`
  })

  app.tool('workspace', {}, async (_args, io) => {
    const roots = await io.roots('roots')
    return roots.map(({ name, uri }) => `${name} ${uri}`).join(', ')
  })

  app.tool('register', { asks: { who, age, sure } }, async (_args, io) => {
    const { name } = await io.ask('who', 'Your name?')
    const { years } = await io.ask('age', `How old are you, ${name}?`)
    const { confirm } = await io.ask('sure', `Register ${name}, ${years}?`)
    return `${name}, ${years}: ${confirm}`
  })

  app.tool('trip', { asks: { who, where } }, async (_args, io) => {
    const [{ name }, { to }, { content }, roots] = await Promise.all([
      io.ask('who', 'Who travels?'),
      io.ask('where', 'Where to?'),
      io.sample('advice', prompt('What to pack?')),
      io.roots('roots'),
    ])
    return `${name} to the ${to}. ${content.text} ${roots.length} roots.`
  })

  app.tool('discuss', {}, async (_args, io) => {
    const { content: news } = await io.sample('news', prompt('What is new?'))
    const { content: opinion } = await io.sample('opinion', prompt(`Is that good: ${news.text}`))
    return `${news.text} ${opinion.text}`
  })

  app.tool('pack', {}, async (_args, io) => {
    const [{ content }, roots] = await Promise.all([io.sample('advice', prompt('What to pack?')), io.roots('roots')])
    return `${content.text} ${roots.length} roots.`
  })
  return app
}

const sure = z.object({ confirm: z.boolean() })
const who = z.object({ name: z.string().min(2) })
const age = z.object({ years: z.int().min(0).max(150) })
const where = z.object({ to: z.enum(['sea', 'hills']) })

function prompt(text) {
  return { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 50 }
}
