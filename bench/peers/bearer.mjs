// Rally with OAuth bearer tokens: the same, and a token signed with RS256 on every request.
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { bearer } from '../../dist/bearer.js'
import { serve } from '../../dist/node.js'
import { announce } from './announce.mjs'
import { app } from './app.mjs'

const issuer = 'https://issuer.example.com'
const audience = 'https://bench.example.com/mcp'
const { publicKey, privateKey } = await generateKeyPair('RS256')
const jwks = { keys: [{ ...(await exportJWK(publicKey)), alg: 'RS256', kid: 'bench' }] }
const token = await new SignJWT({ client_id: 'bench' })
  .setProtectedHeader({ alg: 'RS256', kid: 'bench' })
  .setIssuer(issuer)
  .setAudience(audience)
  .setSubject('ada')
  .setExpirationTime('1h')
  .sign(privateKey)

const { port } = await serve(app, { port: 0, authenticate: bearer({ issuer, audience, jwks }) })
announce(port, `Bearer ${token}`)
