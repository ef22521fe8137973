// The demo as a process of its own, asked from a terminal: with curl, or in a shell.
import { onTestFinished } from 'vitest'
import { Child, DEMO_ARGS } from '../interop/child.ts'

export interface DemoProcess {
  child: Child
  url: string
}

/** Starts the demo on a port that was free. It keeps nothing, unless the arguments name a store. */
export async function startDemo(
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Promise<DemoProcess> {
  const child = runDemo(['--port', '0', ...args], env)
  const [, url = ''] = await child.printed.match(/listening on (\S+)/).catch((cause: unknown) => {
    throw new Error(`The demo did not start: ${child.complained.text}`, { cause })
  })
  return { child, url }
}

/** Starts the demo with arguments of its own, and nothing kept unless they name a store. It is gone when the test is over. */
export function runDemo(args: readonly string[], env: Readonly<Record<string, string>> = {}): Child {
  return ending(new Child(process.execPath, [...DEMO_ARGS, ...args], env))
}

/** What a shell command printed. */
export async function shell(command: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  return printedBy('bash', ['-c', command], env)
}

/** Posts a message with the real curl and gives the response. */
export async function curl(
  url: string,
  message: { method: string; params: { name?: string; taskId?: string; _meta: object } },
): Promise<unknown> {
  const { name = message.params.taskId } = message.params
  const headers = [
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    'MCP-Protocol-Version: 2026-07-28',
    `Mcp-Method: ${message.method}`,
    ...(name === undefined ? [] : [`Mcp-Name: ${name}`]),
  ]
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })
  const args = ['--silent', '--show-error', url, ...headers.flatMap((header) => ['-H', header]), '--data', body]
  return JSON.parse(await printedBy('curl', args))
}

async function printedBy(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { ended, printed, complained } = ending(new Child(command, args, env))
  const { code } = await ended
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${complained.text}`)
  return printed.text
}

function ending(child: Child): Child {
  onTestFinished(async () => {
    await child.kill()
  })
  return child
}
