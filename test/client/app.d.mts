import type { Rally, RallyOptions } from 'mcp-rally'

/** Called from the steps and waits of the tools: what is under way, and the signal that it is cancelled by. */
export type Hold = (what: string, signal: AbortSignal) => Promise<void>

export function testApp(options?: Partial<RallyOptions>, hold?: Hold): Rally
