// mcp-rally/bearer: an authenticator for OAuth access tokens. The only entry that loads jose.
export { bearer, type BearerAlgorithm, type BearerOptions } from './auth/bearer.ts'
export type { Jwks, KeyFunction } from './auth/verify.ts'
export type { ResourceMetadata } from './auth/metadata.ts'
