// A server with what the demo leaves out: a page to visit, the client's roots, and a call that lasts until it is cancelled.
// It serves over the standard streams with --stdio, else over HTTP, and says on its error stream what it is doing.
import { createServer } from 'node:http'
import { rally } from 'mcp-rally'
import { serve, stdio } from 'mcp-rally/node'
import { z } from 'zod'

const visited = new Set()
const page = createServer((request, response) => {
  visited.add(new URL(request.url, 'http://page').searchParams.get('token'))
  response.end('Thank you.')
})
await new Promise((resolve) => page.listen(0, '127.0.0.1', resolve))
const pageUrl = (token) => `http://127.0.0.1:${page.address().port}/?token=${encodeURIComponent(token)}`

const app = rally({ name: 'questions', version: '1.0.0', keys: ['a secret of the interop tests, long enough'] })

app.tool('sign_in', { description: 'Sends the user to a page, and waits until they were there' }, async (_args, io) => {
  await io.visit('page', 'Please sign in.', pageUrl, { done: ({ token }) => visited.has(token), waitMs: 0 })
  return 'Signed in.'
})

app.tool('workspace', { description: 'Names the roots of the client' }, async (_args, io) => {
  const roots = await io.roots('roots')
  return roots.map(({ uri, name }) => `${name ?? '(unnamed)'}: ${uri}`).join('\n')
})

app.tool(
  'wait',
  { description: 'Lasts until it is cancelled', input: z.object({ label: z.string().default('it') }) },
  async ({ label }, io) => {
    const { signal } = io
    io.progress(1, 2, 'half of it is done')
    console.error(`${label} is waiting`)
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    console.error(`${label} is cancelled`)
  },
)

if (process.argv.includes('--stdio')) {
  await stdio(app)
  page.close()
  page.closeAllConnections()
} else {
  const { url } = await serve(app, { port: 0 })
  console.log(`listening on ${url}`)
}
