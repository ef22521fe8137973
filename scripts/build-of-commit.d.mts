export interface BuiltCommit {
  /** The URL of its `dist/`. */
  readonly dist: string
  readonly remove: () => void
}

export function buildOfCommit(commit: string): BuiltCommit
