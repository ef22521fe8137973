import type { Rally, RallyOptions, Store } from 'mcp-rally'

/** `hold` lets a test decide when a machine is made. */
export function taskApp(store: Store, options?: Partial<RallyOptions>, hold?: () => Promise<void>): Rally
