// What HTTP is spoken on: Node's own client, or a fetch function.

/** Sends one request. What comes of it is told to `answer`. */
export interface HttpClient {
  /** `headers` are names and values in turn. Gives what ends it; nothing is told after that. */
  post(headers: readonly string[], body: string, answer: HttpResponseListener): () => void
  /** The same without a body, for older servers. One that `isIdle` does not keep the process from ending. */
  open(method: 'GET' | 'DELETE', headers: readonly string[], isIdle: boolean, answer: HttpResponseListener): () => void
  close(): void
}

export interface HttpResponseListener {
  head(status: number, header: (name: string) => string | undefined): void
  data(chunk: Uint8Array): void
  end(): void
  /** `wasSent`: whether anything of it may have reached the server. */
  failed(error: unknown, wasSent: boolean): void
}
