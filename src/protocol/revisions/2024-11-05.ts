// Revision 2024-11-05: as 2025-03-26, without batches, annotations of tools, and audio.
import type { InputRequest, SamplingMessage } from '../messages.ts'
import { revision20250326 } from './2025-03-26.ts'
import type { OlderRevision, Written } from './older.ts'
import type { Result } from './rounds.ts'
import { mapped } from './older.ts'

export const revision20241105: OlderRevision = {
  ...revision20250326,
  name: '2024-11-05',
  takesBatches: false,
  question,
  result,
}

function question(asked: InputRequest, elicitationId: string): Written {
  const hasAudio = asked.method === 'sampling/createMessage' && asked.params.messages.some(isAudio)
  return hasAudio ? { unsupported: 'its sampling has no audio' } : revision20250326.question(asked, elicitationId)
}

function isAudio({ content }: SamplingMessage): boolean {
  return [content].flat().some(({ type }) => type === 'audio')
}

function result(method: string, given: Result): Result {
  const known = revision20250326.result(method, given)
  switch (method) {
    case 'tools/list':
      return mapped(known, 'tools', ({ annotations: _hints, ...tool }) => tool)
    case 'tools/call':
      return mapped(known, 'content', toOlderBlock)
    case 'prompts/get':
      return mapped(known, 'messages', (message) => ({
        ...message,
        content: toOlderBlock(message['content'] as Result),
      }))
    default:
      return known
  }
}

/** Audio becomes a resource in the result, which this revision has. The URI only has to be one. */
function toOlderBlock(block: Result): Result {
  if (block['type'] !== 'audio') return block
  const { data: blob, mimeType, annotations } = block
  const resource = { uri: 'attachment:audio', mimeType, blob }
  return { type: 'resource', resource, ...(annotations !== undefined && { annotations }) }
}
