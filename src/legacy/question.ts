// A question in the words of the client's revision.

export interface Question {
  readonly key: string
  readonly request: { readonly method: string; readonly params?: object }
  readonly isVisit: boolean
}
