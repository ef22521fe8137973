export interface Check {
  id: string
  name?: string
  status: string
  description: string
  errorMessage?: string
  details?: object
}

export interface Run {
  status: number | null
  output: string
  scenarios: { name: string; checks: Check[] | undefined }[]
}

export interface Counts {
  passed: number
  failed: number
}

/** Counts the checks of a run, of at least so many scenarios, and describes it. */
export function describeRun(run: Run, atLeast: number): Counts & { text: string }

export function sum(counts: Counts[]): Counts
