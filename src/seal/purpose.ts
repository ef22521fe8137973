// What a token is for, and the prefix that says so. A new layout or algorithm is a new prefix; no token names its own.

/** All of one length, so that what follows is at a fixed offset. */
export const prefixes = {
  requestState: 'rs1.',
  serverRequest: 'sr1.',
  session: 'se1.',
  event: 'ev1.',
  cursor: 'cu1.',
} as const

export const prefixBytes = 4

export type Purpose = keyof typeof prefixes
