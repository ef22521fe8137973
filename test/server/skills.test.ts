// Skills (SEP-2640): what a server offers, who may know of it, and what a client refuses to use.
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Authenticate, Rally, SkillFolder } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { AppLike, Client, Skill } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve, skillFolder } from 'mcp-rally/node'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { isObject } from '../../src/protocol/json.ts'

const logger = { warn() {}, error() {} }
const INSTRUCTIONS = '# Refunds\n\nRead references/limits.md first.\n'
const REFUNDS = 'skill://refunds/SKILL.md'

function newApp(): Rally {
  return rally({ name: 'shop', version: '1.0.0', logger, pageSize: 2 })
    .skill(
      'refunds',
      {
        description: 'How to refund an order: "quoted", with a colon.\u2028And a line.',
        frontmatter: { license: 'MIT', metadata: { author: 'shop', nested: '1.0' } },
        files: { 'references/limits.md': 'At most 100 EUR.\n', 'assets/ü & ?.bin': Uint8Array.of(0, 255, 254) },
      },
      INSTRUCTIONS,
    )
    .skill('acme/scoped', { description: 'Needs a scope', scopes: ['admin'], files: { 'a.txt': 'a' } }, 'Scoped.')
    .skill('acme/hers', { description: 'Hidden', visible: ({ caller }) => caller?.principal === 'alice' }, 'Hers.')
}

const authenticate: Authenticate = (http) => {
  const [user = '', ...scopes] = (http.header('authorization') ?? '').split(' ').slice(1)
  return user === '' ? undefined : { principal: user, scopes }
}

describe.each(['2026-07-28', '2025-11-25'])('over HTTP, in %s', (revision) => {
  const clients: Client[] = []
  let url = ''
  let close: () => Promise<void>
  beforeAll(async () => {
    ;({ url, close } = await serve(newApp(), { port: 0, authenticate, handleSignals: false }))
  })
  afterAll(async () => {
    for (const client of clients) await client.close()
    await close()
  })

  async function as(user: string): Promise<Client> {
    const client = await connect(url, { headers: { authorization: `Bearer ${user}` }, revision })
    clients.push(client)
    return client
  }

  test('a client lists a skill, reads its files, and has each verified', async () => {
    const client = await as('bob')
    expect(client.server.capabilities.extensions).toMatchObject({
      'io.modelcontextprotocol/skills': { directoryRead: true },
    })
    const [skill] = await client.listSkills()
    if (skill === undefined) throw new Error('There is no skill.')
    expect(skill).toMatchObject({ uri: REFUNDS, frontmatter: { name: 'refunds', license: 'MIT' } })
    expect(await client.getSkill(REFUNDS)).toEqual(skill)
    const manifest = await client.readSkill(skill)
    expect(manifest).toMatchObject({ isVerified: true, mimeType: 'text/markdown' })
    expect(manifest.instructions?.trimStart()).toBe(INSTRUCTIONS)
    expect(await client.readSkill(skill, 'references/limits.md')).toMatchObject({ text: 'At most 100 EUR.\n' })
    expect((await client.readSkill(skill, 'assets/ü & ?.bin')).bytes).toEqual(Uint8Array.of(0, 255, 254))
    const listed = await client.listResources()
    expect(listed.map(({ uri }) => uri)).toEqual([REFUNDS])
  })

  test('scopes and `visible` are those of every path to the skill', async () => {
    const names = async (user: string): Promise<string[]> =>
      (await (await as(user)).listSkills()).map(({ frontmatter }) => frontmatter.name)
    expect(await names('bob')).toEqual(['refunds'])
    expect(await names('alice admin')).toEqual(['refunds', 'scoped', 'hers'])
    const bob = await as('bob')
    for (const uri of ['skill://acme/scoped/SKILL.md', 'skill://acme/scoped/a.txt']) {
      await expect(bob.readResource(uri)).rejects.toMatchObject({ status: 403 })
    }
    await expect(bob.getSkill('skill://acme/scoped/SKILL.md')).rejects.toMatchObject({ status: 403 })
    const hidden = await bob.getSkill('skill://acme/hers/SKILL.md').catch((error: unknown) => error)
    const absent = await bob.getSkill('skill://acme/none/SKILL.md').catch((error: unknown) => error)
    expect(hidden).toMatchObject({ rpcCode: -32_602, message: 'Skill not found: skill://acme/hers/SKILL.md' })
    expect(absent).toMatchObject({ rpcCode: -32_602, message: 'Skill not found: skill://acme/none/SKILL.md' })
  })
})

/** A client whose server has every result of a method changed on its way. */
function tampered(method: string, change: (result: Record<string, unknown>) => void): Promise<Client> {
  const app = newApp()
  const tampering: AppLike = {
    dispatch: async (message, context) => {
      const reply = await app.dispatch(message, context)
      if (reply === undefined || !isObject(message) || message['method'] !== method) return reply
      const body = JSON.parse(reply.text) as { result: Record<string, unknown> }
      change(body.result)
      return { ...reply, text: JSON.stringify(body) }
    },
  }
  return connect(tampering, { logger })
}

async function readBy(made: Promise<Client>, path?: string): Promise<unknown> {
  const connected = await made
  const [skill] = await connected.listSkills()
  if (skill === undefined) throw new Error('There is no skill.')
  return connected.readSkill(skill, path)
}

function contentOf(result: Record<string, unknown>): { text: string } {
  return (result['contents'] as { text: string }[])[0] ?? { text: '' }
}

describe('a server whose files are not those that it listed', () => {
  test('has no file of the same size but another digest read', async () => {
    const evil = tampered('resources/read', (result) => {
      const content = contentOf(result)
      content.text = content.text.replace('first', 'FIRST')
    })
    await expect(readBy(evil)).rejects.toMatchObject({ code: 'SKILL_UNVERIFIED', message: /digest/ })
  })

  test('has no file of another size read', async () => {
    const evil = tampered('resources/read', (result) => {
      contentOf(result).text += 'more'
    })
    await expect(readBy(evil)).rejects.toMatchObject({ code: 'SKILL_UNVERIFIED', message: /bytes/ })
  })

  test('has no SKILL.md read whose frontmatter the user has not seen', async () => {
    const evil = tampered('skills/list', (result) => {
      for (const skill of result['skills'] as Skill[]) skill.frontmatter.description = 'Harmless'
    })
    await expect(readBy(evil)).rejects.toMatchObject({ code: 'SKILL_UNVERIFIED', message: /"description"/ })
  })

  test.each(['other.md', '../other/SKILL.md', 'references/%2e%2e/x', ''])(
    'has no file %j read that the entry does not list',
    async (path) => {
      const fair = tampered('resources/read', () => {})
      await expect(readBy(fair, path)).rejects.toMatchObject({ code: 'SKILL_UNVERIFIED' })
    },
  )

  test.each<[string, (skill: Skill) => void]>([
    ['a URI that is not a SKILL.md', (skill) => (skill.uri = 'skill://refunds/OTHER.md')],
    ['another name', (skill) => (skill.frontmatter.name = 'other')],
    ['a name that is not allowed', (skill) => (skill.frontmatter.name = 'Not Allowed')],
    ['no resources', (skill) => (skill.resources = 7 as unknown as Skill['resources'])],
    ['no SKILL.md among them', (skill) => (skill.resources = [])],
    ['a digest of another kind', ({ resources }) => Object.assign(resources[0] ?? {}, { digest: 'md5:1' })],
    ['a file outside of it', ({ resources }) => Object.assign(resources[1] ?? {}, { uri: 'skill://other/a.md' })],
    ['a file above it', ({ resources }) => Object.assign(resources[1] ?? {}, { uri: 'skill://refunds/%2e%2e/a.md' })],
  ])('has an entry with %s left out of the list', async (_what, change) => {
    const evil = await tampered('skills/list', (result) => change((result['skills'] as [Skill])[0]))
    const names = (await evil.listSkills()).map(({ frontmatter }) => frontmatter.name)
    expect(names).toEqual(['scoped'])
  })

  test('a dynamic skill is read, and not called verified', async () => {
    const dynamic = tampered('skills/list', (result) => {
      for (const skill of result['skills'] as Skill[]) skill.resources = 'dynamic'
    })
    expect(await readBy(dynamic, 'references/limits.md')).toMatchObject({
      isVerified: false,
      text: 'At most 100 EUR.\n',
    })
  })
})

describe('a skill in a folder', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rally-skill-'))
  })
  afterEach(() => rm(join(folder, 'refunds'), { recursive: true, force: true }))
  afterAll(() => rm(folder, { recursive: true, force: true }))

  async function write(files: Record<string, string>): Promise<string> {
    const root = join(folder, 'refunds')
    for (const [path, content] of Object.entries(files)) {
      await mkdir(join(root, path, '..'), { recursive: true })
      await writeFile(join(root, path), content)
    }
    return root
  }

  test('is served byte for byte, without files whose names begin with a dot', async () => {
    const markdown = '\uFEFF---\r\nname: refunds\r\ndescription: >-\r\n  How to\r\n  refund\r\n---\r\nDo it.\r\n'
    const root = await write({ 'SKILL.md': markdown, 'a/b.md': 'b', '.env': 'SECRET=1', 'a/.git/x': 'x' })
    const client = await connect(rally({ name: 'a', version: '1' }).skill('refunds', await skillFolder(root)))
    const [skill] = await client.listSkills()
    if (skill === undefined) throw new Error('There is no skill.')
    expect(skill.frontmatter).toEqual({ name: 'refunds', description: 'How to refund' })
    expect(await client.readSkill(skill)).toMatchObject({ text: markdown, instructions: 'Do it.\r\n' })
    const uris = skill.resources === 'dynamic' ? [] : skill.resources.map(({ uri }) => uri)
    expect(uris).toEqual([REFUNDS, 'skill://refunds/a/b.md'])
    await client.close()
  })

  const HEAD = '---\nname: refunds\ndescription: d\n---\n'
  test.each([
    ['no SKILL.md', { 'a.md': 'a' }],
    ['no frontmatter', { 'SKILL.md': '# Refunds' }],
    ['frontmatter that is not YAML', { 'SKILL.md': '---\n{\n---\n' }],
    ['frontmatter that is not a mapping', { 'SKILL.md': '---\n- a\n---\n' }],
    [
      'a bomb of aliases',
      { 'SKILL.md': `---\na: &a [1,1]\nb: &b [${'*a,'.repeat(99)}]\nc: [${'*b,'.repeat(99)}]\n---\n` },
    ],
    ['frontmatter that is nested deeply', { 'SKILL.md': `---\na: ${'['.repeat(10_000)}\n---\n` }],
  ])('with %s is refused', async (_what, files) => {
    await expect(write(files as Record<string, string>).then((root) => skillFolder(root))).rejects.toMatchObject({
      code: 'SKILL_INVALID',
    })
  })

  test('with a link is refused: it could lead anywhere', async () => {
    const root = await write({ 'SKILL.md': HEAD })
    await symlink('/etc/hosts', join(root, 'hosts'))
    await expect(skillFolder(root)).rejects.toMatchObject({ code: 'SKILL_INVALID', message: /not a link/ })
  })
})

test.each<[string, () => unknown]>([
  ['a name with capitals', () => newApp().skill('Refunds', { description: 'd' }, '')],
  ['a path that leads out', () => newApp().skill('../x', { description: 'd' }, '')],
  ['nothing', () => newApp().skill('a', undefined as unknown as { description: string }, 'x')],
  ['no instructions', () => newApp().skill('a', { description: 'd' } as unknown as SkillFolder)],
  ['no description', () => newApp().skill('a', {} as { description: string }, '')],
  [
    'metadata that is not strings',
    () => newApp().skill('a', { description: 'd', frontmatter: { metadata: { n: 1 } } }, ''),
  ],
  ['a file that leads out', () => newApp().skill('a', { description: 'd', files: { '../x': '' } }, '')],
  ['a file of the name SKILL.md', () => newApp().skill('a', { description: 'd', files: { 'SKILL.md': '' } }, '')],
  ['too many files', () => newApp().skill('a', { description: 'd', files: many(512) }, '')],
  [
    'another name in its folder',
    () => newApp().skill('a', { frontmatter: { name: 'b', description: 'd' }, files: {} }),
  ],
])('app.skill() with %s throws SKILL_INVALID', (_what, add) => {
  expect(add).toThrow(expect.objectContaining({ code: 'SKILL_INVALID' }))
})

test('two skills with the same files throw NAME_TAKEN', () => {
  const app = newApp()
  expect(() => app.skill('refunds', { description: 'd' }, '')).toThrow(expect.objectContaining({ code: 'NAME_TAKEN' }))
})

function many(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`${index}.md`, '']))
}
