// Two people of the company, and their access tokens. In your own server an OAuth issuer signs them.
import type { Authenticate, Caller } from 'mcp-rally'
import { bearer } from 'mcp-rally/bearer'
import type { JWK } from 'jose'
import { exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose'

export const PEOPLE = {
  ada: { scopes: ['expenses:submit'], claims: { name: 'Ada', department: 'research' } },
  grace: {
    scopes: ['expenses:submit', 'expenses:approve'],
    claims: { name: 'Grace', department: 'sales', limit: 500 },
  },
} satisfies Record<string, Omit<Caller, 'principal'>>

export type Person = keyof typeof PEOPLE

const ISSUER = 'https://login.example.com'
const AUDIENCE = 'https://expenses.example.com/mcp'

/** A key to sign tokens with. Processes that accept the same tokens have the same. */
export async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'EdDSA', kid: 'example' }
}

export async function tokenOf(person: Person, key: JWK): Promise<string> {
  const { scopes, claims } = PEOPLE[person]
  return new SignJWT({ ...claims, scope: scopes.join(' '), client_id: 'example' })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'example', typ: 'at+jwt' })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(person)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(await importJWK(key))
}

export function acceptTokens({ d: _secret, ...publicKey }: JWK): Authenticate {
  return bearer({
    issuer: ISSUER,
    audience: AUDIENCE,
    jwks: { keys: [publicKey] },
    // Handlers see these and no others.
    claims: ['name', 'department', 'limit'],
  })
}
