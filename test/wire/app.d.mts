import type { Rally } from 'mcp-rally'

/** The app of the contract suite: one tool for each behaviour that every host must have. */
export function contractApp(): Rally
