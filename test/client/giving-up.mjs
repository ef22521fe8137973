// Gives up on a server that never answers, and has nothing else to do.
import { connect } from 'mcp-rally/client'

const command = { command: process.execPath, args: ['-e', 'process.stdin.resume()'] }
const options = { revision: '2025-11-25', signal: AbortSignal.timeout(200) }
await connect(command, options).catch(({ code }) => console.log(code))
