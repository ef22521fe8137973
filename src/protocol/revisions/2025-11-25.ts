// Revision 2025-11-25: forms and URL visits, tools in sampling, structured content that is always an object.
import type { InputRequest } from '../messages.ts'
import type { OlderRevision, Written } from './older.ts'
import type { Result } from './rounds.ts'
import { mapped } from './older.ts'
import { isObject } from '../json.ts'

export const revision20251125: OlderRevision = {
  name: '2025-11-25',
  capabilities: ['elicitation.form', 'elicitation.url', 'sampling', 'sampling.tools', 'sampling.context', 'roots'],
  implied: {},
  takesBatches: false,
  primesStreams: true,
  tasks: true,
  serverInfo: (info) => info,
  question,
  result,
}

function question(asked: InputRequest, elicitationId: string): Written {
  if (asked.method !== 'elicitation/create' || asked.params.mode !== 'url') return asked
  return { method: asked.method, params: { ...asked.params, elicitationId } }
}

function result(method: string, given: Result): Result {
  switch (method) {
    case 'tools/list':
      return mapped(given, 'tools', ({ outputSchema, ...tool }) =>
        isObject(outputSchema) && outputSchema['type'] === 'object' ? { ...tool, outputSchema } : tool,
      )
    case 'tools/call': {
      const { structuredContent, ...rest } = given
      // Any other value is in `content` as text already.
      return isObject(structuredContent) ? { ...rest, structuredContent } : rest
    }
    default:
      return given
  }
}
