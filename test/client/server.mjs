// Serves the app of the client's tests from a process of its own: over the standard streams with --stdio, else over HTTP.
// What it is doing it says on its error stream.
import { serve, stdio } from 'mcp-rally/node'
import { testApp } from './app.mjs'

const options = JSON.parse(process.env.OPTIONS ?? '{}')
const app = testApp(options, async (what) => console.error(`${what} in ${process.pid}`))

// For tests of what a client makes of a server that misbehaves.
app.tool('die', {}, () => {
  console.error('Something is badly wrong.')
  process.exit(3)
})
app.tool('pid', { annotations: { readOnlyHint: true } }, () => String(process.pid))
app.tool('env', {}, () => Object.keys(process.env).toSorted().join(' '))
app.tool('chatter', {}, () => {
  process.stdout.write(
    'I am no message\n{"jsonrpc":"2.0","id":987654,"result":{}}\n{"jsonrpc":"2.0","method":"odd"}\n[1]\n',
  )
  return 'Said too much.'
})
app.tool('change', {}, () => app.notify.toolsChanged())
app.tool('shout', {}, () => 'x'.repeat(100_000))

if (process.argv.includes('--deaf')) {
  process.on('SIGTERM', () => console.error('I do not listen.'))
  setInterval(() => {}, 1_000)
}
if (process.argv.includes('--stdio')) {
  await stdio(app)
} else {
  const { url } = await serve(app, { port: 0 })
  console.log(`listening on ${url}`)
}
