// What a server says during a call, all of it too long: progress, a log message, and at last an error.
const LONG = 'x'.repeat(1_000_000)

const notification = (method, params) => JSON.stringify({ jsonrpc: '2.0', method: `notifications/${method}`, params })

export const talk = (id) => [
  notification('progress', { progressToken: id, progress: 1, message: LONG }),
  notification('message', { level: 'info', logger: LONG, data: 'd' }),
  JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: LONG } }),
]
