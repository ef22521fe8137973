// The keys inside a scope start with the scope's key and a separator, at every depth.

/** No author's key can contain it. */
export const SCOPE_SEPARATOR = '>'

/** The scopes that have settled in a pass. Nothing inside them is recorded any more. */
export class ClosedScopes {
  readonly #prefixes = new Set<string>()

  add(prefix: string): void {
    this.#prefixes.add(prefix)
  }

  /** True if one of the scopes around this key is closed. */
  contain(key: string): boolean {
    for (let end = key.indexOf(SCOPE_SEPARATOR); end !== -1; end = key.indexOf(SCOPE_SEPARATOR, end + 1)) {
      if (this.#prefixes.has(key.slice(0, end + 1))) return true
    }
    return false
  }
}
