import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { bearer, type BearerOptions, type KeyFunction } from 'mcp-rally/bearer'
import { CompactEncrypt, createLocalJWKSet, exportSPKI, importJWK, SignJWT, UnsecuredJWT } from 'jose'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type Claims, sign, signingKey } from '../../test/interop/issuer.ts'
import type { Authenticate, IdentifiedCaller } from './authenticate.ts'
import { identify, AuthenticationError } from './authenticate.ts'

const ISSUER = 'https://issuer.example.com'
const AUDIENCE = 'https://mcp.example.com/mcp'
const METADATA = 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp'
const NOW = Date.UTC(2026, 6, 28)

const rsa = await signingKey('RS256', 'rsa')
const ec = await signingKey('ES256', 'ec')
const ed = await signingKey('EdDSA', 'ed')
const stranger = await signingKey('ES256', 'ec')
const jwks = { keys: [rsa.jwk, ec.jwk, ed.jwk] }

const INVALID = 'The access token is not valid.'

afterEach(() => {
  vi.useRealTimers()
})

describe('a token', () => {
  test.each([rsa, ec, ed])('signed with $alg is taken', async (key) => {
    expect(await caller(make(), await sign(claims(), key))).toMatchObject({ principal: principal('ada', 'cli') })
  })

  test.each([undefined, 'JWT', 'jwt', 'at+jwt', 'application/at+jwt'])('of the type %s is taken', async (typ) => {
    expect(await caller(make(), await token({}, typ === undefined ? {} : { typ }))).toBeDefined()
  })

  test('for several audiences is taken when this resource is one', async () => {
    expect(await caller(make(), await token({ aud: ['https://other.example.com', AUDIENCE] }))).toBeDefined()
  })

  test('for any of several audiences of the resource is taken', async () => {
    const authenticate = make({ audience: [AUDIENCE, 'api://deployer'] })
    expect(await caller(authenticate, await token({ aud: 'api://deployer' }))).toBeDefined()
  })

  test.each(['https://mcp.example.com', 'https://mcp.example.com/'])(
    'for %s is taken whether or not the resource is written with the slash',
    async (aud) => {
      for (const audience of ['https://mcp.example.com', 'https://mcp.example.com/', 'HTTPS://MCP.example.com']) {
        expect(await caller(make({ audience }), await token({ aud }))).toBeDefined()
      }
    },
  )

  test.each<[string, Claims, string]>([
    ['of another issuer', { iss: 'https://evil.example.com' }, INVALID],
    ['of an issuer with another slash', { iss: `${ISSUER}/` }, INVALID],
    ['of no issuer', { iss: undefined }, INVALID],
    ['for another audience', { aud: 'https://other.example.com/mcp' }, 'The access token is not for this resource.'],
    ['for the host alone', { aud: 'https://mcp.example.com' }, 'The access token is not for this resource.'],
    ['for several others', { aud: ['a', 'b'] }, 'The access token is not for this resource.'],
    ['for nobody', { aud: undefined }, 'The access token is not for this resource.'],
    ['that has expired', { exp: seconds() - 60 }, 'The access token has expired.'],
    ['that never expires', { exp: undefined }, INVALID],
    ['that is not valid yet', { nbf: seconds() + 60 }, 'The access token is not valid yet.'],
    ['without a subject', { sub: undefined }, 'The access token names no subject.'],
    ['with an empty subject', { sub: '' }, 'The access token names no subject.'],
    ['with a subject that is a number', { sub: 7 }, 'The access token names no subject.'],
  ])('%s is refused', async (_what, changes, description) => {
    expect(await refusal(make(), await token(changes))).toEqual(invalidToken(description))
  })

  test.each(['logout+jwt', 'secevent+jwt', 'dpop+jwt', 'JOSE'])('of the type %s is refused', async (typ) => {
    expect(await refusal(make(), await token({}, { typ }))).toEqual(invalidToken(INVALID))
  })

  test('of any type but the one that is asked for is refused', async () => {
    const authenticate = make({ typ: 'at+jwt' })
    expect(await caller(authenticate, await token({}, { typ: 'at+jwt' }))).toBeDefined()
    expect(await refusal(authenticate, await token({}, { typ: 'JWT' }))).toEqual(invalidToken(INVALID))
    expect(await refusal(authenticate, await token())).toEqual(invalidToken(INVALID))
  })

  test('is taken while the clocks differ by no more than the tolerance', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW })
    const [at, authenticate] = [seconds(), make({ cacheSeconds: 0 })]
    expect(await caller(authenticate, await token({ exp: at - 9 }))).toBeDefined()
    expect(await refusal(authenticate, await token({ exp: at - 10 }))).toMatchObject({ status: 401 })
    expect(await caller(authenticate, await token({ nbf: at + 10 }))).toBeDefined()
    expect(await refusal(authenticate, await token({ nbf: at + 11 }))).toMatchObject({ status: 401 })
    expect(await refusal(make({ clockTolerance: 0 }), await token({ exp: at }))).toMatchObject({ status: 401 })
  })
})

describe('a forged token', () => {
  test('that nobody signed is refused', async () => {
    const unsigned = new UnsecuredJWT({ ...claims() }).encode()
    expect(await refusal(make(), unsigned)).toEqual(invalidToken(INVALID))
    expect(await refusal(make(), `${unsigned}AAAA`)).toEqual(invalidToken(INVALID))
  })

  test.each([
    ['its PEM text', async () => Buffer.from(await exportSPKI((await importJWK(rsa.jwk, 'RS256')) as never))],
    ['its JWK', async () => Buffer.from(JSON.stringify(rsa.jwk))],
    ['its modulus', async () => Buffer.from(String(rsa.jwk.n), 'base64url')],
  ])('that takes the public key for a shared secret (%s) is refused', async (_what, secret) => {
    const forged = await new SignJWT({ ...claims() })
      .setProtectedHeader({ alg: 'HS256', kid: 'rsa' })
      .sign(new Uint8Array(await secret()))
    expect(await refusal(make(), forged)).toEqual(invalidToken(INVALID))
    // Not even where the author's function hands out a secret.
    const careless = make({ jwks: (async () => new Uint8Array(await secret())) as unknown as KeyFunction })
    expect(await refusal(careless, forged)).toEqual(invalidToken(INVALID))
  })

  test('signed with a key of its own under a known name is refused', async () => {
    expect(await refusal(make(), await sign(claims(), stranger))).toEqual(invalidToken(INVALID))
  })

  test('that brings its own key along is refused', async () => {
    const brought = { jwk: stranger.jwk, jku: 'https://evil.example.com/jwks' }
    expect(await refusal(make(), await sign(claims(), stranger, brought))).toEqual(invalidToken(INVALID))
  })

  test('that names a key which is not there is refused', async () => {
    expect(await refusal(make(), await token({}, { kid: 'unknown' }))).toEqual(invalidToken(INVALID))
  })

  test('whose claims were changed is refused', async () => {
    const [header, , signature] = (await token()).split('.')
    const payload = Buffer.from(JSON.stringify(claims({ sub: 'root' }))).toString('base64url')
    expect(await refusal(make(), `${header}.${payload}.${signature}`)).toEqual(invalidToken(INVALID))
  })

  test('that demands an extension is refused', async () => {
    const demanding = await new SignJWT({ ...claims() })
      .setProtectedHeader({ alg: 'ES256', kid: 'ec', crit: ['urn:x'], 'urn:x': true })
      .sign(ec.privateKey, { crit: { 'urn:x': true } })
    expect(await refusal(make(), demanding)).toEqual(invalidToken(INVALID))
  })

  test('that is encrypted is refused', async () => {
    const encrypted = await new CompactEncrypt(new TextEncoder().encode(JSON.stringify(claims())))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .encrypt(randomBytes(32))
    expect(await refusal(make(), encrypted)).toEqual(invalidToken(INVALID))
  })

  test('under an algorithm that is not among those asked for is refused', async () => {
    const authenticate = make({ algorithms: ['EdDSA'] })
    expect(await caller(authenticate, await sign(claims(), ed))).toBeDefined()
    expect(await refusal(authenticate, await token())).toEqual(invalidToken(INVALID))
  })
})

describe('the Authorization header', () => {
  const MALFORMED = invalidToken('The access token is malformed or too long.')

  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('may spell the scheme %s', async (scheme) => {
    expect(await ask(make(), `${scheme} ${await token()}`)).toMatchObject({ principal: principal('ada', 'cli') })
  })

  test.each([undefined, '', 'Basic YWRhOmxvdmVsYWNl', 'DPoP eyJ.a.b', 'Bearerish a.b.c', 'eyJ.a.b'])(
    'that brings no bearer token (%s) is answered with where to get one, and no error',
    async (authorization) => {
      expect(await refusedWith(make(), authorization)).toEqual({
        status: 401,
        message: 'An access token is required.',
        headers: { 'WWW-Authenticate': `Bearer resource_metadata="${METADATA}"` },
      })
    },
  )

  test.each(['Bearer', 'Bearer ', 'Bearer a b', 'Bearer a.b.c, Bearer d.e.f', 'Bearer a.b.c\u0000', 'Bearer "a.b.c"'])(
    'that is malformed (%j) is refused',
    async (authorization) => {
      expect(await refusedWith(make(), authorization)).toEqual(MALFORMED)
    },
  )

  test.each(['a', 'a.b', 'a.b.c', '..', 'e30.e30.', 'W10.W10.W10'])(
    'with what is no JWT (%s) is refused',
    async (jwt) => {
      expect(await refusal(make(), jwt)).toEqual(invalidToken(INVALID))
    },
  )

  test('with a token over the limit is refused before anything looks at it', async () => {
    const find = vi.fn<KeyFunction>(createLocalJWKSet(jwks))
    const fitting = await token()
    const authenticate = make({ jwks: find, maxTokenBytes: fitting.length })
    expect(await caller(authenticate, fitting)).toBeDefined()
    expect(find).toHaveBeenCalledOnce()
    expect(await refusal(authenticate, `${fitting}A`)).toEqual(MALFORMED)
    expect(await refusal(make({ jwks: find }), 'A'.repeat(8_193))).toEqual(MALFORMED)
    expect(find).toHaveBeenCalledOnce()
  })

  test('is the only place where a token is looked for', async () => {
    const jwt = await token()
    const asked: string[] = []
    const header = (name: string): undefined => void asked.push(name)
    const refused = identify(make(), { method: 'POST', url: `/mcp?access_token=${jwt}`, header })
    await expect(refused).rejects.toMatchObject({ status: 401, message: 'An access token is required.' })
    expect(asked).toEqual(['authorization'])
  })
})

describe('the challenge', () => {
  test('names the scopes that every call needs', async () => {
    const authenticate = make({ scopes: ['mcp', 'files:read'] })
    expect(await refusedWith(authenticate, undefined)).toMatchObject({
      status: 401,
      headers: { 'WWW-Authenticate': `Bearer resource_metadata="${METADATA}", scope="mcp files:read"` },
    })
    expect(await refusal(authenticate, await token({ exp: 1 }))).toMatchObject({
      status: 401,
      headers: {
        'WWW-Authenticate':
          'Bearer error="invalid_token", error_description="The access token has expired.", ' +
          `resource_metadata="${METADATA}", scope="mcp files:read"`,
      },
    })
  })

  test('to a token that lacks one of them is a 403 that names them all', async () => {
    expect(await refusal(make({ scopes: ['mcp', 'files'] }), await token({ scope: 'mcp' }))).toEqual({
      status: 403,
      message: 'The granted scopes are not sufficient.',
      headers: {
        'WWW-Authenticate': `Bearer error="insufficient_scope", resource_metadata="${METADATA}", scope="mcp files"`,
      },
    })
  })

  test('for a call that needs more names that and what every call needs, each once', async () => {
    const { challenge } = await caller(make({ scopes: ['mcp'] }), await token())
    expect(challenge?.(['deploy:write', 'mcp'])).toBe(
      `Bearer error="insufficient_scope", resource_metadata="${METADATA}", scope="mcp deploy:write"`,
    )
  })
})

describe('the principal', () => {
  test('is issuer, subject and client as JSON', async () => {
    const { principal: text } = await caller(make(), await token())
    expect(text).toBe('["https://issuer.example.com","ada","cli"]')
  })

  test('is the same under a refreshed token', async () => {
    const authenticate = make()
    const first = await caller(authenticate, await token({ jti: '1', scope: 'mcp' }))
    const second = await caller(authenticate, await token({ jti: '2', scope: 'mcp more', exp: seconds() + 900 }))
    expect(second.principal).toBe(first.principal)
  })

  test.each<[string, Claims, (string | null)[]]>([
    ['client_id', { client_id: 'a', azp: 'b' }, [ISSUER, 'ada', 'a']],
    ['azp where there is no client_id', { client_id: undefined, azp: 'b' }, [ISSUER, 'ada', 'b']],
    ['nothing where there is neither', { client_id: undefined }, [ISSUER, 'ada', null]],
  ])('takes for the client %s', async (_what, changes, expected) => {
    const { principal: text } = await caller(make(), await token(changes))
    expect(JSON.parse(text)).toEqual(expected)
  })

  test('is another one for every other subject or client, however they are written', async () => {
    const pairs = [
      { sub: 'ada', client_id: 'cli' },
      { sub: 'ada', client_id: 'web' },
      { sub: 'bob', client_id: 'cli' },
      { sub: 'ada","cli', client_id: 'x' },
      { sub: 'ada', client_id: 'cli","x' },
      { sub: 'null', client_id: 'cli' },
      { sub: 'cli', client_id: 'cli' },
      { sub: undefined, client_id: 'cli', gty: 'client-credentials' },
    ]
    const authenticate = make()
    const texts = await Promise.all(
      pairs.map(async (pair) => (await caller(authenticate, await token(pair))).principal),
    )
    expect(new Set(texts).size).toBe(pairs.length)
  })

  test.each([{ gty: 'client-credentials' }, { grant_type: 'client_credentials' }, { idtyp: 'app' }])(
    'of a token marked %j that names no subject is the client',
    async (mark) => {
      const { principal: text } = await caller(make(), await token({ sub: undefined, ...mark }))
      expect(text).toBe('["https://issuer.example.com",null,"cli"]')
    },
  )

  test('of a token that is marked so and names no client either is nobody', async () => {
    const nameless = await token({ sub: undefined, client_id: undefined, gty: 'client-credentials' })
    expect(await refusal(make(), nameless)).toEqual(invalidToken('The access token names no subject.'))
  })
})

describe('the scopes', () => {
  test.each<[Claims, string[]]>([
    [{ scope: 'a b' }, ['a', 'b']],
    [{ scope: ' a  b ' }, ['a', 'b']],
    [{ scope: ['a', 'b'] }, ['a', 'b']],
    [{ scope: undefined, scp: 'a b' }, ['a', 'b']],
    [{ scope: undefined, scp: ['a', 'b'] }, ['a', 'b']],
    [{ scope: 'a', scp: ['b', 'a'] }, ['a', 'b']],
    [{ scope: ['a', 7, null, ''] }, ['a']],
    [{ scope: { a: true } }, []],
    [{ scope: undefined }, []],
  ])('of %j are %j', async (changes, scopes) => {
    expect((await caller(make(), await token(changes))).scopes).toEqual(scopes)
  })

  test('bring along what they imply, and what that implies', async () => {
    const implies = { admin: ['write'], write: ['read', 'admin'] }
    const authenticate = make({ implies, scopes: ['read'] })
    expect((await caller(authenticate, await token({ scope: 'admin' }))).scopes).toEqual(['admin', 'write', 'read'])
    expect(await refusal(authenticate, await token({ scope: 'constructor' }))).toMatchObject({ status: 403 })
  })
})

describe('the keys', () => {
  test('may come from a function', async () => {
    const authenticate = make({ jwks: ({ kid }) => (kid === 'ec' ? ec.jwk : undefined) })
    expect(await caller(authenticate, await token())).toBeDefined()
    expect(await refusal(authenticate, await sign(claims(), rsa))).toEqual(invalidToken(INVALID))
  })

  test('may come from a set of jose, whose word on an unknown key is taken', async () => {
    const authenticate = make({ jwks: createLocalJWKSet({ keys: [ec.jwk] }) })
    expect(await caller(authenticate, await token())).toBeDefined()
    expect(await refusal(authenticate, await sign(claims(), rsa))).toEqual(invalidToken(INVALID))
  })

  test('that a function cannot give are a 503, with the cause for the log alone', async () => {
    const cause = new Error('the vault is sealed')
    const jwksFailing = make({
      jwks: () => {
        throw cause
      },
    })
    const error = await failure(jwksFailing, `Bearer ${await token()}`)
    expect(error).toMatchObject({ status: 503, headers: { 'Retry-After': '1' }, cause })
    expect(error.message).toBe('Access tokens cannot be verified at the moment.')
  })

  test('that do not fit the algorithm of a token make it invalid, and the log says why', async () => {
    const error = await failure(make({ jwks: () => rsa.jwk }), `Bearer ${await token()}`)
    expect(error).toMatchObject({ status: 401, message: INVALID })
    expect(error.cause).toBeInstanceOf(Error)
  })

  test('too short for their algorithm make a token invalid, and the log says why', async () => {
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const weak = { keys: [{ ...short.publicKey.export({ format: 'jwk' }), kty: 'RSA', kid: 'rsa', alg: 'RS256' }] }
    const error = await failure(make({ jwks: weak }), `Bearer ${await sign(claims(), rsa)}`)
    expect(error).toMatchObject({ status: 401, message: INVALID })
    expect(error.cause).toBeInstanceOf(Error)
  })

  test('are all tried where a token does not name one and several fit', async () => {
    const nameless = JSON.parse(
      JSON.stringify({ keys: [stranger.jwk, ec.jwk] }, (key, value: unknown) => (key === 'kid' ? undefined : value)),
    ) as typeof jwks
    const authenticate = make({ jwks: nameless })
    expect(await caller(authenticate, await token({}, { kid: undefined }))).toBeDefined()
    const outsider = await signingKey('ES256', 'ec')
    expect(await refusal(authenticate, await sign(claims(), outsider, { kid: undefined }))).toEqual(
      invalidToken(INVALID),
    )
    const expired = await token({ exp: 1 }, { kid: undefined })
    expect(await refusal(authenticate, expired)).toEqual(invalidToken('The access token has expired.'))
  })
})

describe('verifying', () => {
  test('is done once for a token within a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW })
    const find = vi.fn<KeyFunction>(createLocalJWKSet(jwks))
    const [authenticate, jwt] = [make({ jwks: find }), await token()]
    const first = await caller(authenticate, jwt)
    expect(await caller(authenticate, jwt)).toEqual(first)
    expect(find).toHaveBeenCalledTimes(1)
    await caller(authenticate, await token({ jti: 'another' }))
    expect(find).toHaveBeenCalledTimes(2)
    vi.setSystemTime(NOW + 60_000)
    expect(await caller(authenticate, jwt)).toEqual(first)
    expect(find).toHaveBeenCalledTimes(3)
  })

  test('is never spared to a token that has expired', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW })
    const [authenticate, jwt] = [make(), await token({ exp: seconds() + 20 })]
    expect(await caller(authenticate, jwt)).toBeDefined()
    vi.setSystemTime(NOW + 29_999)
    expect(await caller(authenticate, jwt)).toBeDefined()
    vi.setSystemTime(NOW + 30_000)
    expect(await refusal(authenticate, jwt)).toEqual(invalidToken('The access token has expired.'))
  })

  test('is the same for later requests, whatever a handler does to its caller', async () => {
    const [authenticate, jwt] = [make({ claims: ['groups'] }), await token({ groups: ['staff'] })]
    const { scopes, claims: passedOn } = await caller(authenticate, jwt)
    expect(() => (scopes as string[]).push('admin')).toThrow(TypeError)
    expect(() => (passedOn['groups'] as string[]).push('admins')).toThrow(TypeError)
    expect(() => Object.assign(passedOn, { admin: true })).toThrow(TypeError)
    expect(await caller(authenticate, jwt)).toMatchObject({ scopes: ['mcp'], claims: { groups: ['staff'] } })
  })

  test('is done every time where nothing is to be remembered', async () => {
    const find = vi.fn<KeyFunction>(createLocalJWKSet(jwks))
    const [authenticate, jwt] = [make({ jwks: find, cacheSeconds: 0 }), await token()]
    await caller(authenticate, jwt)
    await caller(authenticate, jwt)
    expect(find).toHaveBeenCalledTimes(2)
  })

  test('a refused token is looked at anew each time', async () => {
    const find = vi.fn<KeyFunction>(createLocalJWKSet(jwks))
    const [authenticate, jwt] = [make({ jwks: find, scopes: ['more'] }), await token()]
    expect(await refusal(authenticate, jwt)).toMatchObject({ status: 403 })
    expect(await refusal(authenticate, jwt)).toMatchObject({ status: 403 })
    expect(find).toHaveBeenCalledTimes(2)
  })
})

describe('the metadata document', () => {
  test('is there under the resource path and at the root', () => {
    const { documents } = make({ scopes: ['mcp'] })
    const expected = {
      resource: AUDIENCE,
      authorization_servers: [ISSUER],
      scopes_supported: ['mcp'],
      bearer_methods_supported: ['header'],
    }
    expect([...(documents ?? [])].map(([path, text]) => [path, JSON.parse(text) as unknown])).toEqual([
      ['/.well-known/oauth-protected-resource', expected],
      ['/.well-known/oauth-protected-resource/mcp', expected],
    ])
  })

  test('of a resource at the root of its host is at the root alone', async () => {
    const authenticate = make({ audience: 'https://mcp.example.com' })
    expect([...(authenticate.documents?.keys() ?? [])]).toEqual(['/.well-known/oauth-protected-resource'])
    expect(await refusedWith(authenticate, undefined)).toMatchObject({
      headers: {
        'WWW-Authenticate': 'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource"',
      },
    })
  })

  test('of a resource whose path ends in a slash is found without it too', () => {
    const { documents } = make({ audience: 'https://mcp.example.com/a/mcp/' })
    expect([...(documents?.keys() ?? [])]).toEqual([
      '/.well-known/oauth-protected-resource',
      '/.well-known/oauth-protected-resource/a/mcp/',
      '/.well-known/oauth-protected-resource/a/mcp',
    ])
  })

  test('says what the author wants said, but not of another resource', () => {
    const metadata = { resource_name: 'Deployer', authorization_servers: ['https://login.example.com'] }
    const { documents } = make({
      audience: 'api://deployer',
      resource: AUDIENCE,
      metadata: { ...metadata, ...({ resource: 'https://evil.example.com' } as object) },
    })
    expect(JSON.parse(documents?.get('/.well-known/oauth-protected-resource') ?? '')).toEqual({
      ...metadata,
      resource: AUDIENCE,
      bearer_methods_supported: ['header'],
    })
  })
})

describe('options', () => {
  test.each<[string, Partial<Record<keyof BearerOptions, unknown>>, RegExp]>([
    ['no issuer', { issuer: '' }, /issuer/],
    ['an issuer that is no address', { issuer: 'accounts' }, /authorization_servers/],
    ['no audience', { audience: undefined }, /audience/],
    ['an empty list of audiences', { audience: [] }, /audience/],
    ['an empty audience', { audience: [''] }, /audience/],
    ['an audience that is no address, and no resource', { audience: 'api://deployer' }, /resource/],
    ['a resource with a fragment', { resource: `${AUDIENCE}#a` }, /not the URL of a resource/],
    ['a resource with a query', { resource: `${AUDIENCE}?a` }, /not the URL of a resource/],
    ['no keys', { jwks: undefined }, /jwks/],
    ['keys over plain http', { jwks: 'http://issuer.example.com/jwks' }, /https/],
    ['keys at what is no address', { jwks: '/jwks' }, /https/],
    ['keys in a file', { jwks: new URL('file:///jwks.json') }, /https/],
    ['what is no set of keys', { jwks: { keys: 'none' } }, /JSON Web Key Set/],
    ['a shared secret among the keys', { jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } }, /shared secret/],
    ['a private key among the keys', { jwks: { keys: [{ ...ec.jwk, d: 'AAAA' }] } }, /private key/],
    ['an algorithm that is not in a list', { algorithms: 'RS256' }, /algorithms/],
    ['a shared-secret algorithm', { algorithms: ['HS256'] }, /HS256/],
    ['the algorithm none', { algorithms: ['none'] }, /none/],
    ['no algorithm', { algorithms: [] }, /algorithms/],
    ['a scope with a quote', { scopes: ['a"b'] }, /scopes/],
    ['scopes in one string', { scopes: 'a b' }, /scopes/],
    ['a negative tolerance', { clockTolerance: -1 }, /clockTolerance/],
    ['a cache without end', { cacheSeconds: Number.POSITIVE_INFINITY }, /cacheSeconds/],
  ])('with %s are an error at once', (_what, changes, message) => {
    const build = (): unknown => make(changes as Partial<BearerOptions>)
    expect(build).toThrow(message)
    expect(build).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })
})

function make(changes: Partial<BearerOptions> = {}): Authenticate {
  return bearer({ issuer: ISSUER, audience: AUDIENCE, jwks, ...changes })
}

function claims(changes: Claims = {}): Claims {
  const now = seconds()
  return { iss: ISSUER, aud: AUDIENCE, sub: 'ada', client_id: 'cli', scope: 'mcp', exp: now + 300, ...changes }
}

function token(changes: Claims = {}, header: object = {}): Promise<string> {
  return sign(claims(changes), ec, header)
}

function seconds(): number {
  return Math.floor(Date.now() / 1000)
}

function principal(subject: string, client: string): string {
  return JSON.stringify([ISSUER, subject, client])
}

function ask(authenticate: Authenticate, authorization: string | undefined): Promise<IdentifiedCaller> {
  const header = (name: string): string | undefined => (name === 'authorization' ? authorization : undefined)
  return identify(authenticate, { method: 'POST', url: '/mcp', header })
}

function caller(authenticate: Authenticate, jwt: string): Promise<IdentifiedCaller> {
  return ask(authenticate, `Bearer ${jwt}`)
}

async function failure(authenticate: Authenticate, authorization: string | undefined): Promise<AuthenticationError> {
  const outcome = await ask(authenticate, authorization).catch((error: unknown) => error)
  if (!(outcome instanceof AuthenticationError)) throw new Error('It was not refused.', { cause: outcome })
  return outcome
}

interface Refusal {
  status: number
  message: string
  headers: Readonly<Record<string, string>>
}

/** What the caller is told; nothing is for the log. */
async function refusedWith(authenticate: Authenticate, authorization: string | undefined): Promise<Refusal> {
  const { status, message, headers, cause } = await failure(authenticate, authorization)
  expect(cause).toBeUndefined()
  return { status, message, headers }
}

function refusal(authenticate: Authenticate, jwt: string): Promise<Refusal> {
  return refusedWith(authenticate, `Bearer ${jwt}`)
}

function invalidToken(description: string): Refusal {
  const challenge = `Bearer error="invalid_token", error_description="${description}", resource_metadata="${METADATA}"`
  return { status: 401, message: description, headers: { 'WWW-Authenticate': challenge } }
}
