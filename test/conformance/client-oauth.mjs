// The user, the keys and the employer of the client under test, for the scenarios of authorization.
import { importPKCS8 } from 'jose'

const METADATA_URL = 'https://conformance-test.local/client-metadata.json'
const REDIRECT_URL = 'http://127.0.0.1:1/callback'

/** The option `oauth` for a scenario. What belongs to the scenario is in its context. */
export async function oauthFor(scenario, context) {
  const { client_id: id, client_secret: secret, issuer, private_key_pem: pem, signing_algorithm: alg } = context
  const key = pem === undefined ? undefined : await importPKCS8(pem, alg)
  const client = id === undefined ? undefined : { id, secret, key, issuer }
  return {
    redirectUrl: REDIRECT_URL,
    onAuthorize: agree,
    clientMetadataUrl: METADATA_URL,
    ...(client && { client }),
    ...grantFor(scenario, context),
  }
}

function grantFor(scenario, { idp_client_id: id, idp_id_token: idToken, idp_issuer: idpIssuer }) {
  if (scenario.startsWith('auth/client-credentials-')) return { grant: 'client_credentials' }
  if (idpIssuer === undefined) return {}
  return { grant: { idToken: () => idToken, idpIssuer, idpClient: { id } } }
}

/** A user who agrees at once: the page redirects without a question. */
async function agree(page) {
  const { headers } = await fetch(page, { redirect: 'manual' })
  return headers.get('location')
}
