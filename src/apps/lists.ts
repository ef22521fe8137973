// The lists of a client that is asked in a page: its tools, and the tools that Rally adds. In an MCP App, tools link the page.
import { ANSWER_TOOL, PAGE_TYPE, PAGE_URI, RESULT_TOOL } from '../protocol/apps.ts'
import { isObject } from '../protocol/json.ts'
import type { Tool } from '../protocol/messages.ts'
import type { ServedInApps } from '../server/apps.ts'
import { hasPage } from '../server/apps.ts'
import { plainText } from '../server/content.ts'
import type { ListName } from '../server/registry.ts'
import { RequestSource } from '../server/source.ts'

export function toolsText(served: ServedInApps): string {
  const { registry } = served.app
  return listText(served, 'tools', [{ ...RESULT, ...FOR_MODEL }, ANSWER], (entry) => {
    const tool = entry as Tool
    return registry.tools.get(tool.name)?.apps === true ? linked(tool) : tool
  })
}

/** For a client that is asked by a link, which knows nothing of pages. */
export function plainToolsText(served: ServedInApps): string {
  const { registry } = served.app
  return listText(served, 'tools', [RESULT], (entry) => {
    const tool = entry as Tool
    const registered = registry.tools.get(tool.name)
    return registered && hasPage(registered, 'page') ? withoutOutput(tool) : tool
  })
}

export function resourcesText(served: ServedInApps): string {
  return listText(served, 'resources', OWN_RESOURCES, (entry) => entry)
}

/** What Rally adds is on the first page. A list that differs between clients must not be shared between them. */
function listText(
  { app, request, info, context }: ServedInApps,
  name: ListName,
  own: readonly object[],
  change: (entry: unknown) => unknown,
): string {
  const { registry, serverMeta, limits } = app
  const { params, meta } = request
  const cursor = params?.['cursor'] ?? undefined
  const viewer = new RequestSource({ info, meta, caller: context.caller, overHttp: context.overHttp }, limits)
  const { [name]: entries, ...next } = registry.list(name, cursor, viewer)
  const changed = (entries as unknown[]).map(change)
  const text = plainText({ [name]: cursor === undefined ? [...changed, ...own] : changed, ...next }, serverMeta)
  return `${text.slice(0, -1)},${registry.hintsText(false)}}`
}

/** Clients hold every result to `outputSchema`, and a call that waits for the user has no such result yet. */
function withoutOutput({ outputSchema: _output, ...tool }: Tool): Tool {
  return tool
}

function linked(entry: Tool): object {
  const { _meta, ...tool } = withoutOutput(entry)
  const ui = isObject(_meta?.['ui']) ? _meta['ui'] : {}
  // The second name is that of hosts that were made before the extension was released.
  return { ...tool, _meta: { ..._meta, ui: { ...ui, resourceUri: PAGE_URI }, 'ui/resourceUri': PAGE_URI } }
}

const FOR_MODEL = { _meta: { ui: { visibility: ['model'] } } }

const RESULT = {
  name: RESULT_TOOL,
  title: 'Result of a call that asks the user',
  description:
    'Waits for a call that is waiting for the user, and returns its result. Call it only with an id that an earlier result named.',
  inputSchema: {
    type: 'object',
    properties: { id: { type: 'string', description: 'The id that the earlier result named.' } },
    required: ['id'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
}

const ANSWER = {
  name: ANSWER_TOOL,
  title: 'Answer of the form',
  description: 'Only for the form that the user answers. The model cannot call it.',
  inputSchema: {
    type: 'object',
    properties: {
      key: { type: 'string' },
      id: { type: 'string' },
      tool: { type: 'string' },
      arguments: { type: 'object' },
      state: { type: 'string' },
      answers: { type: 'object' },
    },
    required: ['key', 'id'],
    additionalProperties: false,
  },
  _meta: { ui: { visibility: ['app'] } },
}

const OWN_RESOURCES: readonly object[] = [{ uri: PAGE_URI, name: 'Questions of tools', mimeType: PAGE_TYPE }]
