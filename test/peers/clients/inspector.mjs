import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { report, target } from './target.mjs'

const inspector = join(
  import.meta.dirname,
  '../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
)
const server = target.url === undefined ? [target.command, ...target.args] : [target.url, '--transport', 'http']

function ask(...args) {
  try {
    return JSON.parse(execFileSync(process.execPath, [inspector, '--cli', ...server, ...args], { encoding: 'utf8' }))
  } catch (error) {
    // It ends with a status of its own when a tool fails.
    return JSON.parse(error.stdout)
  }
}

const { tools } = ask('--method', 'tools/list')
const greeted = ask('--method', 'tools/call', '--tool-name', 'greet', '--tool-arg', 'name=Ada')
const deployed = ask('--method', 'tools/call', '--tool-name', 'deploy')
report(tools, greeted, deployed)
