// Revision 2025-03-26: no elicitation, batches of messages, no titles, no structured content, no resource links.
import type { InputRequest } from '../messages.ts'
import { revision20250618 } from './2025-06-18.ts'
import type { OlderRevision, Written } from './older.ts'
import type { Result } from './rounds.ts'
import { mapped, picked } from './older.ts'

export const revision20250326: OlderRevision = {
  ...revision20250618,
  name: '2025-03-26',
  capabilities: ['sampling', 'sampling.context', 'roots'],
  takesBatches: true,
  serverInfo: (info) => picked(info, ['name', 'version']),
  question,
  result,
}

function question(asked: InputRequest, elicitationId: string): Written {
  if (asked.method === 'elicitation/create') return { unsupported: 'it has no elicitation' }
  return revision20250618.question(asked, elicitationId)
}

const RESOURCE = ['name', 'description', 'mimeType', 'annotations']

function result(method: string, given: Result): Result {
  switch (method) {
    case 'tools/list':
      return mapped(given, 'tools', (tool) => picked(tool, ['name', 'description', 'inputSchema', 'annotations']))
    case 'tools/call': {
      const { structuredContent: _structured, ...rest } = given
      return mapped(rest, 'content', toOlderBlock)
    }
    case 'prompts/list':
      return mapped(given, 'prompts', (prompt) =>
        mapped(picked(prompt, ['name', 'description', 'arguments']), 'arguments', (argument) =>
          picked(argument, ['name', 'description', 'required']),
        ),
      )
    case 'prompts/get':
      return mapped(given, 'messages', (message) => ({
        ...message,
        content: toOlderBlock(message['content'] as Result),
      }))
    case 'resources/list':
      return mapped(given, 'resources', (resource) => picked(resource, ['uri', 'size', ...RESOURCE]))
    case 'resources/templates/list':
      return mapped(given, 'resourceTemplates', (template) => picked(template, ['uriTemplate', ...RESOURCE]))
    default:
      return given
  }
}

function toOlderBlock(block: Result): Result {
  if (block['type'] !== 'resource_link') return block
  const { name, description, uri } = block as { name: string; description?: string; uri: string }
  return { type: 'text', text: `${name}: ${uri}${description === undefined ? '' : `\n${description}`}` }
}
