// What a server has, in tables.
import type { Client } from '../client/client.ts'
import { METHOD_NOT_FOUND, ProtocolError } from '../protocol/errors.ts'
import type { Prompt, PromptArgument, Resource, ResourceTemplate, Tool } from '../protocol/messages.ts'
import { typeText } from './arguments.ts'
import { table } from './table.ts'

export interface Listing {
  /** For scripts. */
  readonly value: unknown
  /** For people; the first line is the headings. */
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

/** With the templates: both are read by a URI. */
export async function listResources(client: Client): Promise<Listing> {
  const [resources, resourceTemplates] = await Promise.all([
    orNone(client.listResources()),
    orNone(client.listResourceTemplates()),
  ])
  const rows = [
    ...resources.map((resource) => row(resource.uri, resource)),
    ...resourceTemplates.map((template) => row(template.uriTemplate, template)),
  ]
  return {
    value: { resources, resourceTemplates },
    lines: (columns) => table(['URI', 'NAME', 'TYPE', 'DESCRIPTION'], rows, columns),
  }
}

/** A server that does not know of such a list has none of it. */
async function orNone<T>(list: Promise<T[]>): Promise<T[]> {
  try {
    return await list
  } catch (error) {
    if (error instanceof ProtocolError && error.rpcCode === METHOD_NOT_FOUND) return []
    throw error
  }
}

function row(uri: string, resource: Resource | ResourceTemplate): unknown[] {
  return [uri, resource.name, resource.mimeType ?? '', about(resource)]
}

function about({ title, description }: { title?: string; description?: string }): string {
  return description ?? title ?? ''
}

/** As they are typed: `id=integer [note=string]`. */
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
  // Not checked by anybody yet.
  return (args as (Partial<PromptArgument> | null)[])
    .map((argument) => [argument?.name, argument?.required === true] as const)
    .map(([name, isRequired]) => (isRequired ? `${String(name)}=...` : `[${String(name)}=...]`))
    .join(' ')
}
