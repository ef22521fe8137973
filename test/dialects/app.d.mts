import type { Rally, RallyOptions } from 'mcp-rally'

export const KEYS: string[]

export function draftApp(options?: Partial<RallyOptions>): Rally
