// Lists the tools, prompts, resources and skills of a server in tables.
import type { Client } from '../client/client.ts'
import { METHOD_NOT_FOUND, ProtocolError } from '../protocol/errors.ts'
import type { Prompt, PromptArgument, Resource, ResourceTemplate, Tool } from '../protocol/messages.ts'
import { typeText } from './arguments.ts'
import { cleanLine } from './clean.ts'

export interface Listing {
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
export async function listSkills(client: Client): Promise<Listing> {
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

const GAP = '  '
const WIDEST = 44
const NARROWEST = 20
const LONGEST_CELL = 500

/** The last column gets the rest of `columns`. Without a screen, `columns` is Infinity and nothing is cut. */
export function table(headings: readonly string[], rows: readonly (readonly unknown[])[], columns: number): string[] {
  const cells = [headings, ...rows.map((row) => row.map((cell) => cleanLine(cell, LONGEST_CELL)))]
  const widths = headings.map((_, column) =>
    Math.min(WIDEST, Math.max(...cells.map((row) => row[column]?.length ?? 0))),
  )
  const last = headings.length - 1
  const before = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0)
  widths[last] = Number.isFinite(columns) ? Math.max(columns - before, NARROWEST) : Infinity
  return cells.map((row) =>
    row
      .map((cell, column) => fitted(cell, widths[column] ?? 0, column === last))
      .join(GAP)
      .trimEnd(),
  )
}

/** Only the last cell is cut. The others may be names, so they push the rest to the right. */
function fitted(cell: string, width: number, isLast: boolean): string {
  if (!isLast) return cell.padEnd(width)
  return cell.length <= width ? cell : `${cell.slice(0, width - 3)}...`
}
