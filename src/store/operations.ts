// What the stores share for operations: how many tasks one call of `find` looks at, and its cursors.
import { RallyError } from '../protocol/errors.ts'
import { shown } from '../protocol/text.ts'

/** The most tasks that one call of `find` looks at. */
export const MAX_LOOKED = 2_000

/** The most tasks that one call of `find` returns. */
export const MAX_FOUND = 1_000

/** A position in the order of creation, as a cursor. It looks like no time, which people pass in its place. */
export function cursorOf(major: number, minor: number | string): string {
  return `page:${major}:${minor}`
}

/** The inverse of `cursorOf`. */
export function readCursor(cursor: string): { readonly major: number; readonly minor: string } {
  const [, major, minor = ''] = /^page:(\d{1,16}):([^]{0,1024})$/.exec(cursor) ?? []
  if (major !== undefined) return { major: Number(major), minor }
  throw new RallyError(
    'TASK_CURSOR',
    `app.tasks.list(): \`before\` must be a Date, or \`next\` of an earlier page, got ${shown(cursor)}. Leave it out to begin with the newest task.`,
  )
}
