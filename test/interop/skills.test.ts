// Skills between our server and the official client, and between the official server and our client.
import type { RequestListener } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client as OfficialClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { memorySkillFiles, SkillsExtension } from '@modelcontextprotocol/server/ext/skills'
import { rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { expect, test } from 'vitest'

test('the official client lists and verifies the skills of our server', async () => {
  const app = rally({ name: 'shop', version: '1.0.0' }).skill(
    'acme/refunds',
    {
      description: 'When: a "customer" asks\nfor money # back\u0085\u2028.',
      frontmatter: { license: 'MIT', metadata: { version: '1.0', 'a: b': '- c' }, 'allowed-tools': 'Read' },
      files: { 'references/Q&A.md': 'Q', 'data.bin': Uint8Array.of(255, 0) },
    },
    'Do it.\n',
  )
  const { url, close } = await serve(app, { port: 0, handleSignals: false })
  const client = new OfficialClient({ name: 'official', version: '2' })
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    const skills = new SkillsClient(client)
    expect([skills.supported, skills.directoryRead]).toEqual([true, true])
    const { skills: listed, invalid } = await skills.list()
    expect(invalid).toEqual([])
    const [skill] = listed
    if (skill === undefined) throw new Error('There is no skill.')
    expect(await skills.read(skill)).toMatchObject({ verified: true, frontmatter: skill.frontmatter })
    expect(await skills.read(skill, 'references/Q&A.md')).toMatchObject({ verified: true, text: 'Q' })
    expect((await skills.read(skill, 'data.bin')).bytes).toEqual(Uint8Array.of(255, 0))
    expect((await skills.get(skill.uri)).skill).toEqual(skill)
    const { resources } = await skills.readDirectory('skill://acme/refunds')
    expect(resources.map(({ name, mimeType }) => [name, mimeType])).toEqual([
      ['SKILL.md', 'text/markdown'],
      ['data.bin', 'application/octet-stream'],
      ['references', 'inode/directory'],
    ])
  } finally {
    await client.close()
    await close()
  }
})

test('our client lists and verifies the skills of the official server', async () => {
  const skills = await SkillsExtension.load(
    memorySkillFiles({
      'refunds/SKILL.md': '---\nname: refunds\ndescription: |\n  How to\n  refund\nmetadata:\n  n: "1"\n---\nDo it.\n',
      'refunds/references/Q&A.md': 'Q',
      'refunds/data.bin': Uint8Array.of(255, 0),
    }),
  )
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'official', version: '2.0.0' })
    skills.attach(server)
    return server
  })
  const http = createServer(toNodeHandler(handler) as unknown as RequestListener)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  try {
    const client = await connect(`http://127.0.0.1:${port}/mcp`)
    const [skill] = await client.listSkills()
    if (skill === undefined) throw new Error('There is no skill.')
    expect(await client.getSkill(skill.uri)).toEqual(skill)
    expect(await client.readSkill(skill)).toMatchObject({ isVerified: true, instructions: 'Do it.\n' })
    expect(await client.readSkill(skill, 'references/Q&A.md')).toMatchObject({ isVerified: true, text: 'Q' })
    expect((await client.readSkill(skill, 'data.bin')).bytes).toEqual(Uint8Array.of(255, 0))
    await client.close()
  } finally {
    http.closeAllConnections()
    await new Promise((resolve) => http.close(resolve))
  }
})
