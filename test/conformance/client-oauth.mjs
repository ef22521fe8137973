// An OAuth helper beneath the client, of the official package's parts: what a client that knows nothing of OAuth can do with
// its `fetch` option alone.
import { auth, computeScopeUnion, extractWWWAuthenticateParams, UnauthorizedError } from '@modelcontextprotocol/client'

const METADATA_URL = 'https://conformance-test.local/client-metadata.json'
const REDIRECT_URL = 'http://127.0.0.1:1/callback'
const MOST_TRIES = 3

/** Authorizes whenever the server refuses, a few times for one request, with all the scopes that were ever asked for. */
export function oauthFetch(serverUrl, context) {
  const provider = newProvider(context)
  let wanted
  return async (url, init) => {
    for (let tries = 1; ; tries += 1) {
      const response = await fetch(url, { ...init, headers: { ...init.headers, ...provider.authorization() } })
      const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response)
      const isStepUp = response.status === 403 && error === 'insufficient_scope'
      if ((response.status !== 401 && !isStepUp) || tries > MOST_TRIES) return response
      await response.body?.cancel()
      wanted = computeScopeUnion(wanted, scope)
      await authorize(provider, { serverUrl, resourceMetadataUrl, scope: wanted, forceReauthorization: isStepUp })
    }
  }
}

async function authorize(provider, options) {
  if ((await auth(provider, options)) === 'AUTHORIZED') return
  const { code, iss } = await provider.visit()
  const result = await auth(provider, { ...options, authorizationCode: code, iss })
  if (result !== 'AUTHORIZED') throw new UnauthorizedError(`The authorization came to ${result}.`)
}

function newProvider({ client_id: id, client_secret: secret, issuer }) {
  let information = id === undefined ? undefined : { client_id: id, client_secret: secret, issuer }
  let tokens
  let verifier
  let page
  return {
    redirectUrl: REDIRECT_URL,
    clientMetadataUrl: METADATA_URL,
    clientMetadata: {
      client_name: 'mcp-rally conformance',
      redirect_uris: [REDIRECT_URL],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
    clientInformation: () => information,
    saveClientInformation: (given) => (information = given),
    tokens: () => tokens,
    saveTokens: (given) => (tokens = given),
    codeVerifier: () => verifier,
    saveCodeVerifier: (given) => (verifier = given),
    redirectToAuthorization: (url) => (page = url),
    authorization: () => (tokens === undefined ? {} : { Authorization: `Bearer ${tokens.access_token}` }),
    /** The user, who agrees at once. */
    visit: async () => {
      const { headers } = await fetch(page, { redirect: 'manual' })
      const { searchParams } = new URL(headers.get('location'))
      return { code: searchParams.get('code'), iss: searchParams.get('iss') ?? undefined }
    },
  }
}
