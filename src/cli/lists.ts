// Lists the tools, prompts, resources and skills of a server in tables.
import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import { METHOD_NOT_FOUND, ProtocolError } from '../protocol/errors.ts'
import type { Prompt, PromptArgument, Resource, ResourceTemplate, Tool } from '../protocol/messages.ts'
import { typeText } from './arguments.ts'
import { cleanJson } from './clean.ts'
import type { CommandContext } from './command.ts'
import { noMore, withDeclaredOptions } from './command.ts'
import { bold } from './console.ts'
import type { RunContext, ServerOptions } from './context.ts'
import type { ExitCode } from './exit.ts'
import { EXIT } from './exit.ts'
import { LiveAnswers } from './live-answers.ts'
import type { AnswerOptions } from './responder.ts'
import { asksPerson, capabilitiesOf, prepareAnswers } from './responder.ts'
import type { Server } from './server.ts'
import { withClient } from './session.ts'
import { table } from './table.ts'

export function addLists(program: Command, { runContext, serverOf, run }: CommandContext): void {
  for (const [name, list] of Object.entries(LISTS)) {
    withDeclaredOptions(program.command(name).usage('<server> [options]'))
      .description(`list the ${name} of a server`)
      .argument('[words...]')
      .action(async (words: string[], options: AnswerOptions) => {
        const { server, rest } = await serverOf(words, options)
        noMore(rest)
        return run(showList(server, options, list, runContext))
      })
  }
}

/** With the capabilities of a call: a server may show other tools to a client that cannot be asked. */
async function showList(
  server: Server,
  options: AnswerOptions,
  list: (client: Client) => Promise<Listing>,
  context: RunContext,
): Promise<ExitCode> {
  const prepared = await prepareAnswers(options)
  const { answerers } = new LiveAnswers(capabilitiesOf(prepared, asksPerson(context.console, options)), prepared.roots)
  return withClient(server, options, answerers, context, async (client) => {
    show(await list(client), options, context)
    return EXIT.done
  })
}

const LISTS: Readonly<Record<string, (client: Client) => Promise<Listing>>> = {
  tools: listTools,
  prompts: listPrompts,
  resources: listResources,
  skills: listSkills,
}

function show({ value, lines }: Listing, { json }: ServerOptions, { console }: RunContext): void {
  if (json === true) return console.print(cleanJson(value))
  const [headings = '', ...rows] = lines(console.columns)
  if (rows.length === 0) return console.tell('There are none.')
  console.print([bold(headings, console.colours.results), ...rows].join('\n'))
}

interface Listing {
  /** The list as JSON, for scripts. */
  readonly value: unknown
  /** The lines of a table for people. The first line has the headings. */
  readonly lines: (columns: number) => string[]
}

export async function listTools(client: Client): Promise<Listing> {
  const tools = await orNone(client.listTools())
  const rows = tools.map((tool) => [tool.name, argumentsOf(tool), about(tool)])
  return { value: tools, lines: (columns) => table(['NAME', 'ARGUMENTS', 'DESCRIPTION'], rows, columns) }
}

export async function listPrompts(client: Client): Promise<Listing> {
  const prompts = await orNone(client.listPrompts())
  const rows = prompts.map((prompt) => [prompt.name, promptArguments(prompt), about(prompt)])
  return { value: prompts, lines: (columns) => table(['NAME', 'ARGUMENTS', 'DESCRIPTION'], rows, columns) }
}

/** Includes the templates, because both are read by a URI. */
export async function listResources(client: Client): Promise<Listing> {
  const [resources, resourceTemplates] = await Promise.all([
    orNone(client.listResources()),
    orNone(client.listResourceTemplates()),
  ])
  const rows = [
    ...resources.map((resource) => resourceRow(resource.uri, resource)),
    ...resourceTemplates.map((template) => resourceRow(template.uriTemplate, template)),
  ]
  return {
    value: { resources, resourceTemplates },
    lines: (columns) => table(['URI', 'NAME', 'TYPE', 'DESCRIPTION'], rows, columns),
  }
}

/** With the number of files of each. */
async function listSkills(client: Client): Promise<Listing> {
  const skills = await orNone(client.listSkills())
  const rows = skills.map(({ uri, frontmatter: { name, description }, resources }) => [
    name,
    uri,
    resources === 'dynamic' ? 'dynamic' : String(resources.length),
    description,
  ])
  return { value: skills, lines: (columns) => table(['NAME', 'URI', 'FILES', 'DESCRIPTION'], rows, columns) }
}

/** A server that does not have the method has an empty list. */
async function orNone<T>(list: Promise<T[]>): Promise<T[]> {
  try {
    return await list
  } catch (error) {
    if (error instanceof ProtocolError && error.rpcCode === METHOD_NOT_FOUND) return []
    throw error
  }
}

function resourceRow(uri: string, resource: Resource | ResourceTemplate): unknown[] {
  return [uri, resource.name, resource.mimeType ?? '', about(resource)]
}

function about({ title, description }: { title?: string; description?: string }): string {
  return description ?? title ?? ''
}

/** The arguments as a user types them: `id=integer [note=string]`. */
function argumentsOf({ inputSchema }: Tool): string {
  const { properties, required } = inputSchema
  if (typeof properties !== 'object' || properties === null) return ''
  const needed = new Set<unknown>(Array.isArray(required) ? required : [])
  return Object.entries(properties)
    .map(([name, schema]) => [name, `${name}=${typeText(schema, inputSchema)}`] as const)
    .map(([name, text]) => (needed.has(name) ? text : `[${text}]`))
    .join(' ')
}

function promptArguments({ arguments: args }: Prompt): string {
  if (!Array.isArray(args)) return ''
  // The client does not check the arguments of prompts.
  return (args as (Partial<PromptArgument> | null)[])
    .map((argument) => [argument?.name, argument?.required === true] as const)
    .map(([name, isRequired]) => (isRequired ? `${String(name)}=...` : `[${String(name)}=...]`))
    .join(' ')
}
