// Where a page of somebody's tasks ended. It names a task of the caller's own, so there is nothing in it to hide or to forge.
import { invalidParams } from '../server/request.ts'
import type { TaskRecord } from '../store/store.ts'

type Place = Pick<TaskRecord, 'id' | 'createdAt'>

const LONGEST = 1_024

export function cursorAfter({ id, createdAt }: Place): string {
  return Buffer.from(JSON.stringify([createdAt, id])).toString('base64url')
}

export function readCursor(cursor: unknown): Place | undefined {
  if (cursor === undefined || cursor === null) return undefined
  const [createdAt, id] = typeof cursor === 'string' && cursor.length <= LONGEST ? parse(cursor) : []
  if (typeof id === 'string' && Number.isFinite(createdAt)) return { id, createdAt: createdAt as number }
  throw invalidParams('Invalid cursor: it is not one that this server gave. Start the list again.')
}

function parse(cursor: string): unknown[] {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(place) ? place : []
  } catch {
    return []
  }
}
