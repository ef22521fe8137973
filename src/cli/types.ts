// `rally types`: writes the types of a server's tools, for connect<Server>().
import type { Command } from 'commander'
import type { Tool } from '../protocol/messages.ts'
import { cleanLine } from './clean.ts'
import type { CommandContext } from './command.ts'
import { noMore, withServerOptions } from './command.ts'
import type { RunContext, ServerOptions } from './context.ts'
import type { ExitCode } from './exit.ts'
import { EXIT } from './exit.ts'
import { docOf, memberName, TypeFile } from './schema-type.ts'
import type { Server } from './server.ts'
import { withClient } from './session.ts'

const TYPES_HELP = `
Prints a TypeScript file with a type Server:

  npx mcp-rally types http://127.0.0.1:3000/mcp > server.d.ts

  import type { Server } from './server.js'
  const client = await connect<Server>('http://127.0.0.1:3000/mcp')
  await client.tools.deploy({ env: 'prod' })`

export function addTypes(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withServerOptions(program.command('types').usage('<server> [options]'))
    .description("write the TypeScript types of a server's tools")
    .argument('[words...]')
    .addHelpText('after', TYPES_HELP)
    .action(async (words: string[], options: ServerOptions) => {
      const { server, rest } = await serverOf(words, options)
      noMore(rest)
      return run(runTypes(server, options, runContext))
    })
}

async function runTypes(server: Server, options: ServerOptions, context: RunContext): Promise<ExitCode> {
  const { console, signal } = context
  return withClient(server, options, {}, context, async (client) => {
    const tools = await client.listTools({ signal })
    console.print(typesOf(tools, client.server))
    return EXIT.done
  })
}

/** The text of the file. The tools are in the order of the server. */
function typesOf(tools: readonly Tool[], { name, version }: { name: string; version: string }): string {
  const file = new TypeFile()
  // Of tools with the same name, the client knows the last one.
  const members = [...new Map(tools.map((tool) => [tool.name, tool])).values()].map((tool) => memberOf(tool, file))
  return [
    `// The tools of ${cleanLine(`${name} ${version}`, 200)}, written by \`npx mcp-rally types\`. Use it as connect<Server>(...).`,
    "import type { ServerTypes } from 'mcp-rally/client'\n",
    'export type Server = ServerTypes<Tools>\n',
    `export interface Tools {\n${members.join('\n')}\n}`,
    ...file.declarations.map((declaration) => `\n${declaration}`),
  ].join('\n')
}

function memberOf({ name, title, description, inputSchema, outputSchema }: Tool, file: TypeFile): string {
  const input = file.typeOf(inputSchema, `${name} input`, '    ')
  const output = outputSchema && file.typeOf(outputSchema, `${name} output`, '    ')
  const lines = [`    input: ${input}`, ...(output === undefined ? [] : [`    output: ${output}`])]
  return `${docOf([title, description], '  ')}  ${memberName(name)}: {\n${lines.join('\n')}\n  }`
}
