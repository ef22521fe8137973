import type { Rally, RallyOptions } from 'mcp-rally'

export const KEYS: string[]

export function olderApp(options?: Partial<RallyOptions>): Rally
