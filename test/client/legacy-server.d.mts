export interface Listening {
  readonly url: string
  readonly sessions: ReadonlyMap<string, unknown>
  readonly close: () => Promise<void>
}

export function listen(version: 'v1' | 'v2', how?: 'apart'): Promise<Listening>

export function listenSse(): Promise<Listening>
