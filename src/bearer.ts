// mcp-rally/bearer: an authenticator for OAuth access tokens. The only entry that loads jose.
export { bearer, type BearerAlgorithm, type BearerOptions } from './hosts/bearer.ts'
export type { Jwks, KeyFunction } from './hosts/bearer-keys.ts'
export type { ResourceMetadata } from './hosts/resource-metadata.ts'
