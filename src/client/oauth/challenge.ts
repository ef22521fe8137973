// Reads the untrusted `WWW-Authenticate` header of a server that refuses a request.

export interface Challenge {
  /** The address of the server's metadata. */
  readonly resourceMetadata: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly error: string | undefined
}

export const NO_CHALLENGE: Challenge = { resourceMetadata: undefined, scopes: undefined, error: undefined }

const MAX_LENGTH = 8_192
const MAX_SCOPES = 100

/** A scheme, or a parameter of the scheme before it: `Bearer error="invalid_token", scope="a b", Basic realm="x"`. */
const PART = /([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g

/** Returns the challenge of the scheme Bearer. The header may contain those of other schemes too. */
export function readChallenge(header: string | undefined): Challenge {
  let scheme = ''
  const values = new Map<string, string>()
  for (const [, name = '', quoted, plain] of (header ?? '').slice(0, MAX_LENGTH).matchAll(PART)) {
    const value = quoted?.replaceAll(/\\(.)/g, '$1') ?? plain
    if (value === undefined) scheme = name.toLowerCase()
    else if (scheme === 'bearer' && !values.has(name.toLowerCase())) values.set(name.toLowerCase(), value)
  }
  const scope = values.get('scope')
  return {
    resourceMetadata: values.get('resource_metadata'),
    scopes: scope === undefined ? undefined : readScopes(scope),
    error: values.get('error'),
  }
}

/** The scopes of a text, each once. */
export function readScopes(text: string): string[] {
  const scopes = text.split(' ').filter((scope) => SCOPE.test(scope))
  return [...new Set(scopes)].slice(0, MAX_SCOPES)
}

/** The characters that RFC 6749 allows. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** All of these scopes, each once. */
export function unionOf(...lists: readonly (readonly string[] | undefined)[]): string[] {
  return [...new Set(lists.flatMap((list) => list ?? []))]
}
