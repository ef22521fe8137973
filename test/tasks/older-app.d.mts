import type { Rally, RallyOptions } from 'mcp-rally'

export function olderTasksApp(options?: Partial<RallyOptions>): Rally
