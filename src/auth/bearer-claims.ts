// What the claims of a verified access token say: who is calling, and what they were granted.
import type { JWTPayload } from 'jose'

/**
 * Issuer, subject and client as JSON, so that no two callers share a text and a refreshed token gives the same one.
 * `undefined` where the claims name nobody. A client that acts for itself stands beside `null`, which names no user.
 */
export function principalOf(claims: JWTPayload): string | undefined {
  const client = nameIn(claims['client_id']) ?? nameIn(claims['azp']) ?? null
  const subject = nameIn(claims.sub)
  if (subject !== undefined) return JSON.stringify([claims.iss, subject, client])
  // A user's token may lack `sub` as well, and taking the client for the caller would make one of all its users.
  return client !== null && actsForItself(claims) ? JSON.stringify([claims.iss, null, client]) : undefined
}

/** The scopes of `scope` and `scp`, each a string or an array, with all that they imply. */
export function scopesOf(claims: JWTPayload, implied: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const scopes = new Set([...namesIn(claims['scope']), ...namesIn(claims['scp'])])
  // A set's iteration reaches what is added on the way, so this is transitive, and ends.
  for (const scope of scopes) for (const further of implied.get(scope) ?? []) scopes.add(further)
  return [...scopes]
}

/** How issuers mark a token of the client-credentials grant that names no subject. */
function actsForItself(claims: JWTPayload): boolean {
  return (
    claims['gty'] === 'client-credentials' || claims['grant_type'] === 'client_credentials' || claims['idtyp'] === 'app'
  )
}

function namesIn(claim: unknown): string[] {
  const names: unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  return names.flatMap((name) => nameIn(name) ?? [])
}

function nameIn(claim: unknown): string | undefined {
  return typeof claim === 'string' && claim !== '' ? claim : undefined
}
