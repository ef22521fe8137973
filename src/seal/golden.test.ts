// Tokens that version 1 sealed. A later version opens them, or its rollout loses flows (invariant 9).

import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { canonical, digest } from './canonical.ts'
import { requestState, type Claims } from './claims.ts'
import { writePlaintext, type Binding } from './envelope.ts'
import { keyring, prefixes, type Purpose } from './keyring.ts'
import { createSeal } from './seal.ts'
import { tokens } from './token.ts'

interface Golden {
  readonly secrets: readonly { readonly encoding: 'utf8' | 'base64url'; readonly text: string }[]
  readonly tokens: readonly {
    readonly purpose: Purpose
    readonly secret: number
    readonly plaintext: string
    readonly token: string
  }[]
  readonly states: readonly {
    readonly audience: string
    readonly mintedAt: number
    readonly binding: Binding
    readonly claims: Claims
    readonly token: string
  }[]
}

/** The defaults of the seal when golden.json was made. */
const LIMITS = { ttl: 600_000, maxAge: 86_400_000 }

const file = new URL('golden.json', import.meta.url)
if (process.env['GOLDEN'] === 'write') writeFileSync(file, `${JSON.stringify(generate(), null, 2)}\n`)
const golden: Golden = JSON.parse(readFileSync(file, 'utf8'))

describe('what version 1 sealed', () => {
  it.each(golden.tokens)('opens: a $purpose token under secret $secret', ({ purpose, plaintext, token }) => {
    expect(tokens(keyring(golden.secrets.map(bytesOf)), purpose).open(token)).toBe(plaintext)
  })

  it.each(golden.states)('opens: a state of $binding.method', ({ audience, mintedAt, binding, claims, token }) => {
    const seal = createSeal({ audience, keys: golden.secrets.map(bytesOf), now: () => mintedAt })
    expect(seal.open(token, binding)).toEqual(claims)
  })

  it.each(golden.states)('is written the same today: a state of $binding.method', (state) => {
    const { audience, mintedAt, binding, claims, token } = state
    const plaintext = tokens(keyring(golden.secrets.map(bytesOf)), 'requestState').open(token)
    expect(writePlaintext(requestState, claims, binding, { audience, ...LIMITS }, mintedAt)).toBe(plaintext)
  })

  it.each(golden.tokens)('is laid out as described: $purpose, secret $secret', async (vector) => {
    const { purpose, secret, plaintext, token } = vector
    const body = Buffer.from(token.slice(4), 'base64url')
    const [id, salt, nonce] = [body.subarray(0, 8), body.subarray(8, 24), body.subarray(24, 36)]
    const [tag, ciphertext] = [body.subarray(36, 52), body.subarray(52)]
    const master = golden.secrets.map(bytesOf)[secret] ?? Buffer.alloc(0)
    expect(await hkdf(master, Buffer.from('mcp-rally seal 1 key id'), 8)).toEqual(id)
    const purposeKey = await hkdf(master, Buffer.from(`mcp-rally seal 1 purpose ${purpose}`), 32)
    const subKey = await hkdf(purposeKey, Buffer.concat([Buffer.from('mcp-rally seal 1 sub-key '), salt]), 32)
    const key = await crypto.subtle.importKey('raw', subKey, 'AES-GCM', false, ['decrypt'])
    const additionalData = Buffer.concat([Buffer.from(prefixes[purpose]), id])
    const sealed = Buffer.concat([ciphertext, tag])
    const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: nonce, additionalData }, key, sealed)
    expect(Buffer.from(opened).toString()).toBe(plaintext)
  })
})

function bytesOf({ encoding, text }: Golden['secrets'][number]): Buffer {
  return Buffer.from(text, encoding)
}

async function hkdf(secret: Buffer, info: Buffer, size: number): Promise<Buffer> {
  const key = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits'])
  const parameters = { name: 'HKDF', hash: 'SHA-256', salt: Buffer.alloc(0), info }
  return Buffer.from(await crypto.subtle.deriveBits(parameters, key, size * 8))
}

/**
 * How golden.json was made: `GOLDEN=write npx vitest run src/seal/golden.test.ts`. Do not make it anew. A version that
 * changes the layout gets vectors of its own beside these, for as long as tokens of this one may be about.
 */
function generate(): Golden {
  const secrets = [
    { encoding: 'utf8', text: 'correct horse battery staple, and then some: é€😀' },
    {
      encoding: 'base64url',
      text: Buffer.from(Array.from({ length: 48 }, (_, index) => index * 5)).toString('base64url'),
    },
  ] as const
  const purposes: Purpose[] = ['requestState', 'serverRequest', 'session', 'event', 'cursor', 'signal']
  const plaintexts = ['', 'text', '{"of":"é€😀"}\n[1,2,3]']
  const now = 1_785_196_800_000
  const states = [
    {
      audience: 'deployer',
      mintedAt: now + 30_000,
      binding: {
        method: 'tools/call',
        target: 'deploy',
        argumentsDigest: digest(canonical({ service: 'shop', env: 'production', replicas: 3 })),
        principal: 'alice@example.com',
      },
      claims: {
        startedAt: now,
        flowId: 'Zm93LW9mLWEtZ29sZGVu',
        round: 2,
        deferrals: 1,
        version: '2026.7',
        capabilities: 5,
        revision: '2026-07-28',
        carry: { open: { confirm: ['a-pin', 1] }, held: { 'other/key': { action: 'accept', content: { ok: true } } } },
        journal: '[["plan",{"sha":"4bf1e2a"}],["text","line one\\nline two"]]',
      },
    },
    {
      audience: 'https://mcp.example.com',
      mintedAt: now,
      binding: { method: 'resources/read', target: 'file:///a/é', argumentsDigest: digest('{}'), principal: undefined },
      claims: {
        startedAt: now,
        flowId: 'f',
        round: 1,
        deferrals: 0,
        version: undefined,
        capabilities: 0,
        revision: '2026-07-28',
        carry: null,
        journal: '[]',
      },
    },
  ]
  return {
    secrets,
    tokens: secrets.flatMap((secret, index) =>
      purposes.flatMap((purpose) => {
        const box = tokens(keyring([bytesOf(secret)]), purpose)
        return plaintexts.map((plaintext) => ({ purpose, secret: index, plaintext, token: box.seal(plaintext) }))
      }),
    ),
    states: states.map(({ audience, mintedAt, binding, claims }) => {
      const plaintext = writePlaintext(requestState, claims, binding, { audience, ...LIMITS }, mintedAt)
      const token = tokens(keyring(secrets.map(bytesOf)), 'requestState').seal(plaintext)
      return { audience, mintedAt, binding, claims, token }
    }),
  }
}
