// Whether an access token is one that the issuer signed, for this audience and this time.
import type { JWTPayload, JWTVerifyGetKey, JWTVerifyOptions, JWTVerifyResult } from 'jose'
import { errors, jwtVerify } from 'jose'
import type { Jwks } from './bearer-keys.ts'
import { isSeveralKeys, keysOf } from './bearer-keys.ts'

/** Asymmetric all of them: whoever can verify a shared secret's signature can make one. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

export interface Expected {
  readonly issuer: string
  readonly audience: string | readonly string[]
  readonly jwks: Jwks
  readonly algorithms?: readonly string[]
  readonly typ?: string
  readonly clockTolerance: number
}

/** Gives the claims of a token, or throws: an error of jose's about the token, or `KeysUnavailable`. */
export type Verify = (token: string) => Promise<JWTPayload>

export function verifierOf({ issuer, audience, jwks, algorithms, typ, clockTolerance }: Expected): Verify {
  const keys = keysOf(jwks)
  const options: JWTVerifyOptions = {
    issuer,
    audience: [audience].flat().flatMap(spellings),
    algorithms: [...(algorithms ?? ALGORITHMS)],
    clockTolerance,
    requiredClaims: ['exp'],
    ...(typ !== undefined && { typ }),
  }
  return async (token) => {
    const { payload, protectedHeader } = await verifyWith(keys, token, options)
    if (typ === undefined && !isAccessToken(protectedHeader.typ)) throw new errors.JWTInvalid('Unexpected typ')
    return payload
  }
}

async function verifyWith(keys: JWTVerifyGetKey, token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, keys, options)
  } catch (error) {
    if (!isSeveralKeys(error)) throw error
    for await (const key of error) {
      try {
        return await jwtVerify(token, key, options)
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

/** As it was given and as a URL is written; clients send an address without a path with its slash or without. */
function spellings(audience: string): string[] {
  if (!URL.canParse(audience)) return [audience]
  const { href, origin } = new URL(audience)
  return href === `${origin}/` ? [audience, href, origin] : [audience, href]
}

/** An issuer's other JWTs, such as logout tokens, have types of their own. */
function isAccessToken(typ: string | undefined): boolean {
  return typ === undefined || /^(application\/)?(at\+)?jwt$/i.test(typ)
}
