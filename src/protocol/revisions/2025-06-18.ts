// Revision 2025-06-18: forms but no URL visits, titles of options in `enumNames`, defaults for booleans only, one content
// block per sampling message.
import type {
  FormSchema,
  PrimitiveSchemaDefinition,
  InputRequest,
  CreateMessageRequestParams,
  SamplingMessage,
} from '../messages.ts'
import { revision20251125 } from './2025-11-25.ts'
import type { OlderRevision, Written } from './older.ts'
import type { Result } from './rounds.ts'
import { mapped, picked } from './older.ts'

export const revision20250618: OlderRevision = {
  name: '2025-06-18',
  capabilities: ['elicitation.form', 'sampling', 'sampling.context', 'roots'],
  implied: {
    // This revision has no details of elicitation to declare.
    'elicitation.url': ['elicitation.form'],
    // A client with sampling may be asked to add context, and may ignore that.
    sampling: ['sampling.context'],
  },
  takesBatches: false,
  primesStreams: false,
  tasks: false,
  serverInfo: (info) => picked(info, ['name', 'title', 'version']),
  question,
  result,
}

function question(asked: InputRequest): Written {
  switch (asked.method) {
    case 'elicitation/create': {
      if (asked.params.mode === 'url') return { unsupported: 'it has no URL elicitation' }
      const { message, requestedSchema } = asked.params
      const form = toOlderForm(requestedSchema)
      return typeof form === 'string'
        ? { unsupported: form }
        : { method: asked.method, params: { message, requestedSchema: form } }
    }
    case 'sampling/createMessage':
      return { method: asked.method, params: toOlderSample(asked.params) }
    case 'roots/list':
      return asked
  }
}

/** The form in the spelling of this revision, or why it cannot express the form. */
function toOlderForm(form: FormSchema): object | string {
  const properties: Record<string, object> = {}
  for (const [name, field] of Object.entries(form.properties)) {
    if (field.type === 'array') return `its forms have no multi-select, which "${name}" needs`
    properties[name] = toOlderField(field)
  }
  return { type: 'object', properties, ...(form.required && { required: form.required }) }
}

function toOlderField(field: Exclude<PrimitiveSchemaDefinition, { type: 'array' }>): object {
  if (field.type === 'boolean') return field
  // The default is dropped here, and filled in when the answer arrives without a value.
  const { default: _suggested, ...plain } = field
  if (!('oneOf' in plain)) return plain
  const { oneOf, ...rest } = plain
  return { ...rest, enum: oneOf.map((option) => option.const), enumNames: oneOf.map(({ title }) => title) }
}

function toOlderSample(params: CreateMessageRequestParams): object {
  return { ...params, messages: params.messages.flatMap(oneBlockEach) }
}

function oneBlockEach({ role, content }: SamplingMessage): object[] {
  return (Array.isArray(content) ? content : [content]).map((block) => ({ role, content: block }))
}

const LISTS: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
}

function result(method: string, given: Result): Result {
  const known = revision20251125.result(method, given)
  const list = LISTS[method]
  return list === undefined ? known : mapped(known, list, ({ icons: _icons, ...entry }) => entry)
}
