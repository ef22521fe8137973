// Remembers derived keys. Every instance of every history derives the same ones from the same few secrets, which would take a quarter of
// all time. The function is pure, so nothing else changes.
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

type Derive = typeof crypto.hkdfSync

export function rememberDerivedKeys(): void {
  const known = new Map<string, ArrayBuffer>()
  const derive: Derive = crypto.hkdfSync.bind(crypto)
  crypto.hkdfSync = (...args: Parameters<Derive>) => {
    const [, secret, , info] = args
    // Other keys have a random part, and each is derived once.
    if (!(secret instanceof Uint8Array) || typeof info !== 'string') return derive(...args)
    const name = `${Buffer.from(secret).toString('base64')} ${info}`
    const key = known.get(name) ?? derive(...args)
    known.set(name, key)
    return key.slice(0)
  }
  syncBuiltinESMExports()
}
