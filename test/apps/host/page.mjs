// A small host of MCP Apps on the reference AppBridge, in a browser. `seen` is what the model would read. What the host loses, and
// which ways to the model it has, is in the address.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { AppBridge, getToolUiResourceUri, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'

const query = new URLSearchParams(location.search)
const lost = query.getAll('lost')
const theme = query.get('theme') ?? 'light'
document.documentElement.style.colorScheme = theme
const log = document.querySelector('#log')
const seen = []

const capabilities = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } }
const versionNegotiation = { mode: query.get('revision') === 'newest' ? 'auto' : 'legacy' }
const client = new Client({ name: 'host', version: '1.0.0' }, { capabilities, versionNegotiation })
await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', location.href)))
const { tools } = await client.listTools()
const isFor = (who, { _meta }) => (_meta?.ui?.visibility ?? ['model', 'app']).includes(who)

/** What a host passes on of a result. */
function passedOn({ _meta, structuredContent, ...result }) {
  return {
    ...result,
    ...(!lost.includes('_meta') && { _meta }),
    ...(!lost.includes('structuredContent') && structuredContent && { structuredContent }),
  }
}

async function open({ tool, args, result }) {
  const { contents } = await client.readResource({ uri: getToolUiResourceUri(tool) })
  const [{ text: html }] = contents
  const frame = Object.assign(document.createElement('iframe'), { className: 'app', title: tool.name })
  frame.setAttribute('sandbox', 'allow-scripts allow-same-origin')
  log.append(frame)
  const loaded = new Promise((resolve) => {
    addEventListener('message', function listen({ source, data }) {
      if (source !== frame.contentWindow || data?.method !== 'ui/notifications/sandbox-proxy-ready') return
      removeEventListener('message', listen)
      resolve()
    })
  })
  const sandbox = query.get('sandbox') ?? 'allow-scripts'
  frame.src = `${query.get('proxy')}?sandbox=${encodeURIComponent(sandbox)}`
  await loaded
  const variables = {
    '--color-background-primary': 'light-dark(#faf9f5, #262624)',
    '--color-text-primary': 'light-dark(#141413, #faf9f5)',
    '--color-background-inverse': 'light-dark(#9c3d1f, #e8a58c)',
    '--color-text-inverse': 'light-dark(#fff, #141413)',
  }
  const bridge = new AppBridge(
    client,
    { name: 'host', version: '1.0.0' },
    {
      openLinks: {},
      serverTools: {},
      ...(!lost.includes('context') && { updateModelContext: { text: {} } }),
      ...(!lost.includes('message') && { message: { text: {} } }),
    },
    { hostContext: { theme, styles: { variables }, locale: 'en-GB', displayMode: 'inline', toolInfo: { tool } } },
  )
  const initialized = new Promise((resolve) => {
    bridge.oninitialized = resolve
  })
  bridge.onsizechange = ({ height }) => {
    frame.style.height = `${height}px`
  }
  // A member of the bridge, and no event of the browser.
  // oxlint-disable-next-line unicorn/prefer-add-event-listener
  bridge.onmessage = async ({ content }) => {
    seen.push({ message: content[0].text })
    return {}
  }
  bridge.onupdatemodelcontext = async (update) => {
    seen.push({ context: update })
    return {}
  }
  bridge.onopenlink = async ({ url }) => {
    seen.push({ opened: url })
    return {}
  }
  bridge.onrequestteardown = async () => {
    await bridge.teardownResource({})
    frame.remove()
  }
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow))
  const forward = bridge.oncalltool
  if (forward) bridge.oncalltool = async (...call) => passedOn(await forward(...call))
  await bridge.sendSandboxResourceReady({ html, sandbox })
  await initialized
  await bridge.sendToolInput({ arguments: args })
  await bridge.sendToolResult(passedOn(result))
  return bridge
}

let last
let bridge
globalThis.host = {
  async pageSize() {
    const { contents } = await client.readResource({ uri: 'ui://rally/ask' })
    return new TextEncoder().encode(contents[0].text).length
  },
  seen,
  /** The model calls a tool of those that it is shown. */
  async call(name, args = {}) {
    const tool = tools.find((each) => each.name === name)
    if (!tool || !isFor('model', tool)) throw new Error(`The model has no tool ${name}.`)
    const result = await client.callTool({ name, arguments: args })
    const { content, structuredContent, isError } = result
    seen.push({ result: { content, structuredContent, isError } })
    if (!getToolUiResourceUri(tool)) return result
    last = { tool, args, result }
    bridge = await open(last)
    return result
  },
  /** The conversation is opened again, with the old result. */
  async reopen() {
    log.replaceChildren()
    bridge = await open(last)
  },
  /** The same result in another window. */
  async open() {
    await open(last)
  },
  setTheme(to) {
    bridge.setHostContext({ theme: to })
  },
}
document.title = 'ready'
