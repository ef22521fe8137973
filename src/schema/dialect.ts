// Which draft of JSON Schema a schema is written in.
import { RallyError } from '../protocol/errors.ts'
import { toJsonText } from '../protocol/json.ts'

export type Draft = '2020-12' | '7'

/** 2020-12 unless `$schema` says otherwise, as the protocol has it. */
export function draftOf(dialect: unknown, where: string): Draft {
  if (dialect === undefined) return '2020-12'
  const address = typeof dialect === 'string' ? dialect.replace(/^https?:\/\//, '').replace(/#$/, '') : ''
  const draft = DRAFTS.get(address)
  if (draft !== undefined) return draft
  throw new RallyError(
    'SCHEMA_INVALID',
    `${where}: the schema's "$schema" is ${toJsonText(dialect, where)}; write it in draft 2020-12 or draft-07.`,
  )
}

const DRAFTS: ReadonlyMap<string, Draft> = new Map([
  ['json-schema.org/draft/2020-12/schema', '2020-12'],
  ['json-schema.org/draft-07/schema', '7'],
])
