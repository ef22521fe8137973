// The clients and servers of others that are tried with ours. docs/tried.md lists them.

/** A program of clients/ that calls our server: plainly, and with a question in the middle of the call. */
export const clients = [
  { name: 'AI SDK', package: '@ai-sdk/mcp', file: 'ai-sdk.mjs', asks: true },
  { name: 'Mastra', package: '@mastra/mcp', file: 'mastra.mjs', asks: true },
  { name: 'mcp-use', package: 'mcp-use', file: 'mcp-use.mjs', asks: true },
  { name: 'LangChain adapters', package: '@langchain/mcp-adapters', file: 'langchain.mjs', asks: false },
  {
    name: 'Inspector, its command line',
    package: '@modelcontextprotocol/inspector',
    file: 'inspector.mjs',
    asks: false,
  },
] as const

/** Each stands between our client and our server. */
export const gateways = [
  { name: 'mcp-remote', package: 'mcp-remote' },
  { name: 'supergateway', package: 'supergateway' },
] as const

/** Our client and our terminal client call a tool of each. */
export const servers = [
  {
    name: 'server-everything',
    package: '@modelcontextprotocol/server-everything',
    wires: ['stdio', 'HTTP'],
    call: { tool: 'echo', args: { message: 'Ada' }, text: 'Echo: Ada' },
  },
  {
    name: 'server-filesystem',
    package: '@modelcontextprotocol/server-filesystem',
    wires: ['stdio'],
    call: { tool: 'read_text_file', args: { path: 'note.txt' }, text: 'Hello, Ada' },
  },
  {
    name: 'server-memory',
    package: '@modelcontextprotocol/server-memory',
    wires: ['stdio'],
    call: { tool: 'read_graph', args: {}, text: '"entities": []' },
  },
  {
    name: 'FastMCP',
    package: 'fastmcp',
    wires: ['stdio', 'HTTP'],
    call: { tool: 'greet', args: { name: 'Ada' }, text: 'Hello, Ada' },
  },
  {
    name: 'xmcp',
    package: 'xmcp',
    wires: ['stdio', 'HTTP'],
    call: { tool: 'greet', args: { name: 'Ada' }, text: 'Hello, Ada' },
  },
] as const
