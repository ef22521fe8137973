// A page whose TypeScript blocks are run, and what each block needs around it for that.

export interface Page {
  /** From the root of the repository. */
  readonly file: string
  /** Names that the snippets of the page use and do not declare. */
  readonly given: string
  /** One for each block of the page, in order. */
  readonly snippets: readonly Snippet[]
}

export interface Snippet {
  /** A text of the block, so that a block that was moved or added is noticed. */
  readonly has: string
  /** In place of the page's. */
  readonly given?: string
  /** The block continues the one before it, which then runs in front of it. */
  readonly continues?: true
  /** Replaced in the block so that it can run in a test, such as a port. */
  readonly but?: readonly (readonly [text: string, instead: string])[]
  /** Runs after the block. */
  readonly use?: string
  /** The lines that the snippet logs after those which it announces itself, by `// => line`. Default: none. */
  readonly prints?: readonly string[]
}

/** What most snippets take for granted. */
const IMPORTS = `
  import { rally } from 'mcp-rally'
  import { serve } from 'mcp-rally/node'
  import { connect } from 'mcp-rally/client'
  import { z } from 'zod'
`

export const APP = `${IMPORTS}
  const app = rally({ name: 'docs', version: '1.0.0' })
`
