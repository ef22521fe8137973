import { describe, expect, test } from 'vitest'
import { admission, checkBinding } from './admission.ts'

test.each([{ allowedHosts: 'mcp.example.com' }, { allowedHosts: null }, { allowedOrigins: 'https://app.example.com' }])(
  '%j is refused, because it is not a list',
  (options) => {
    const refused = {
      code: 'OPTION_INVALID',
      message: expect.stringContaining("must be an array of strings, or '*'") as unknown,
    }
    expect(() => admission(options as never)).toThrow(expect.objectContaining(refused))
  },
)

describe('without options', () => {
  const admit = admission({})

  test.each(['localhost', 'localhost:3000', 'LocalHost:3000', '127.0.0.1', '127.0.0.1:80', '[::1]', '[::1]:65535'])(
    'the Host %s is served',
    (host) => {
      expect(admit(host, undefined)).toBeUndefined()
    },
  )

  test.each([
    undefined,
    '',
    ':3000',
    'evil.example',
    'evil.example:3000',
    'localhost.evil.example',
    'localhost.',
    'notlocalhost',
    'localhost:3000:3000',
    'localhost:port',
    'localhost@evil.example',
    '127.0.0.1.evil.example',
    '127.0.0.2',
    '0.0.0.0',
    '2130706433',
    '0x7f.1',
    '[::]',
    '[::ffff:127.0.0.1]',
    '::1',
    '192.168.1.10:3000',
  ])('the Host %s is refused: a page whose name was made to point here sends its own', (host) => {
    expect(admit(host, undefined)).toMatch(
      /^Host ".*" is not served here\. To serve it, add its name to `allowedHosts`\.$/,
    )
  })

  test.each([
    undefined,
    'http://localhost',
    'http://localhost:5173',
    'https://LOCALHOST:8443',
    'http://127.0.0.1:3000',
    'http://[::1]:3000',
  ])('the Origin %s may call', (origin) => {
    expect(admit('localhost:3000', origin)).toBeUndefined()
  })

  test.each([
    'null',
    '',
    'https://evil.example',
    'http://localhost.evil.example',
    'http://evil.example/localhost',
    'http://localhost@evil.example',
    'file://',
    'data:text/html,x',
    'chrome-extension://abcdefgh',
    'http://192.168.1.10:3000',
    'localhost:3000',
    'ftp://localhost',
    'http://localhost/page',
    'http://user@localhost',
    'http://localhost\\\\@evil.example',
  ])('the Origin %j may not', (origin) => {
    expect(admit('localhost:3000', origin)).toMatch(
      /^Origin ".*" may not call\. To allow it, add it to `allowedOrigins`\.$/,
    )
  })
})

describe('with options', () => {
  test('the hosts that were named are served, and loopback is not unless it is one of them', () => {
    const admit = admission({ allowedHosts: ['mcp.Example.com', '[2001:db8::1]'] })
    expect(admit('MCP.example.com:443', undefined)).toBeUndefined()
    expect(admit('[2001:db8::1]:8080', undefined)).toBeUndefined()
    expect(admit('localhost:3000', undefined)).toContain('is not served here')
    expect(admit('mcp.example.com.evil.example', undefined)).toContain('is not served here')
  })

  test('pages of the hosts that were named may call, and no other', () => {
    const admit = admission({ allowedHosts: ['mcp.example.com'] })
    expect(admit('mcp.example.com', 'https://mcp.example.com')).toBeUndefined()
    expect(admit('mcp.example.com', 'https://example.com')).toContain('may not call')
    expect(admit('mcp.example.com', 'http://localhost:3000')).toContain('may not call')
  })

  test('the origins that were named may call, to the letter, and no other', () => {
    const admit = admission({ allowedOrigins: ['https://app.example.com'] })
    expect(admit('localhost', 'https://app.example.com')).toBeUndefined()
    expect(admit('localhost', undefined)).toBeUndefined()
    for (const other of ['http://app.example.com', 'https://app.example.com:8443', 'http://localhost', 'null']) {
      expect(admit('localhost', other)).toContain('may not call')
    }
  })

  test('the scheme and the port count, and a default port is the same as none', () => {
    const admit = admission({
      allowedOrigins: ['https://App.example.com:443', 'http://other.example', 'http://third:8080'],
    })
    for (const origin of ['https://app.example.com', 'https://app.example.com:443', 'http://other.example:80']) {
      expect(admit('localhost', origin)).toBeUndefined()
    }
    for (const origin of [
      'http://app.example.com',
      'https://other.example',
      'http://app.example.com:443',
      'http://third',
    ]) {
      expect(admit('localhost', origin)).toContain('may not call')
    }
  })

  test('the origin of an extension is compared by its text', () => {
    const admit = admission({ allowedOrigins: ['chrome-extension://abcdefgh', 'null'] })
    expect(admit('localhost', 'chrome-extension://abcdefgh')).toBeUndefined()
    expect(admit('localhost', 'null')).toBeUndefined()
    expect(admit('localhost', 'chrome-extension://abcdefgi')).toContain('may not call')
  })

  test.each(['app.example.com', 'https://app.example.com/', '', 'localhost:3000'])(
    'an allowed origin of %j is a mistake: no browser sends it',
    (origin) => {
      expect(() => admission({ allowedOrigins: [origin] })).toThrow('`allowedOrigins[0]` must be an origin')
    },
  )

  test('a page of an allowed host must have come over https, unless it is of this machine', () => {
    const admit = admission({ allowedHosts: ['mcp.example.com', 'localhost'] })
    expect(admit('mcp.example.com', 'https://mcp.example.com')).toBeUndefined()
    expect(admit('mcp.example.com', 'http://mcp.example.com')).toContain('may not call')
    expect(admit('localhost', 'http://localhost:5173')).toBeUndefined()
    const any = admission({ allowedHosts: '*' })
    expect(any('tools.lan:3000', 'http://tools.lan:3000')).toContain('may not call')
  })

  test('any host is served where that was said, and then only pages of that very host may call', () => {
    const admit = admission({ allowedHosts: '*' })
    expect(admit('anything.example:1', undefined)).toBeUndefined()
    expect(admit('anything.example:1', 'https://anything.example')).toBeUndefined()
    expect(admit('anything.example:1', 'https://evil.example')).toContain('may not call')
  })

  test('any origin may call where that was said, and the host is still checked', () => {
    const admit = admission({ allowedOrigins: '*' })
    expect(admit('localhost', 'https://evil.example')).toBeUndefined()
    expect(admit('localhost', 'null')).toBeUndefined()
    expect(admit('evil.example', 'https://evil.example')).toContain('is not served here')
  })
})

describe('listening', () => {
  test.each(['127.0.0.1', 'localhost', '::1'])('on %s needs no further word', (host) => {
    expect(() => checkBinding(host, {})).not.toThrow()
  })

  test.each(['0.0.0.0', '::', '', '192.168.1.10', 'mcp.example.com'])('on %j needs allowedHosts', (host) => {
    expect(() => checkBinding(host, {})).toThrow(`listening on ${host} opens the server to the network`)
    expect(() => checkBinding(host, { allowedOrigins: '*' })).toThrow('Pass the host names that it serves')
    expect(() => checkBinding(host, { allowedHosts: ['mcp.example.com'] })).not.toThrow()
    expect(() => checkBinding(host, { allowedHosts: '*' })).not.toThrow()
  })
})
