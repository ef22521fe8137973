// Something that one side of a test waits for, and another does.

export interface Gate {
  readonly opened: Promise<void>
  readonly open: () => void
}

export function gate(): Gate {
  let resolve: () => void
  const opened = new Promise<void>((opening) => (resolve = opening))
  return { opened, open: () => resolve() }
}
