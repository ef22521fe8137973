// The page that users are sent to: it remembers who was there. It keeps no process alive.
import { once } from 'node:events'
import { createServer } from 'node:http'

export async function openPage() {
  const visitors = new Set()
  const server = createServer((request, response) => {
    visitors.add(new URL(request.url, 'http://page').searchParams.get('token'))
    response.writeHead(200, { Connection: 'close' }).end('Thank you.')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  return {
    urlFor: (token) => `http://127.0.0.1:${server.address().port}/?token=${encodeURIComponent(token)}`,
    wasVisited: ({ token }) => visitors.has(token),
  }
}
