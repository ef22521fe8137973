// What a terminal can do with extensions of the protocol: read a skill, and send a request for a method of the server's own.
import type { Client } from '../client/client.ts'
import type { Skill } from '../protocol/skills.ts'
import { SKILL_FILE } from '../protocol/skills.ts'
import { clean, cleanJson, cleanLine } from './clean.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, UsageError } from './exit.ts'
import type { Server } from './server.ts'
import type { RunContext, ServerOptions } from './session.ts'
import { nameOf, withClient } from './session.ts'

/** Prints a file of a skill, verified. `named` is the name of the skill or the URI of its SKILL.md. */
export function runSkill(
  server: Server,
  { named, path }: { named: string; path: string | undefined },
  options: ServerOptions,
  context: RunContext,
): Promise<ExitCode> {
  const { console, signal } = context
  return withClient(server, options, {}, context, async (client) => {
    const skill = await findSkill(client, named)
    const { uri, mimeType, bytes, text, isVerified } = await client.readSkill(skill, path ?? SKILL_FILE, { signal })
    if (!isVerified) console.tell('The server makes this skill for each request: its files have no digests to verify.')
    if (options.json === true)
      console.print(cleanJson({ uri, mimeType, isVerified, text: text ?? null, bytes: bytes.byteLength }))
    else if (text !== undefined) console.print(clean(text, Infinity))
    else if (console.isResultOnScreen)
      console.print(`[${cleanLine(uri)}: ${cleanLine(mimeType ?? 'bytes')}, ${bytes.byteLength} bytes]`)
    else console.printBytes(bytes)
    return EXIT.done
  })
}

/** Prints the result as JSON: only the server knows its form. */
export function runRequest(
  server: Server,
  { method, params }: { method: string; params: Readonly<Record<string, unknown>> },
  options: ServerOptions,
  context: RunContext,
): Promise<ExitCode> {
  const { console, signal } = context
  return withClient(server, options, {}, context, async (client) => {
    console.print(cleanJson(await client.request(method, params, { signal })))
    return EXIT.done
  })
}

async function findSkill(client: Client, named: string): Promise<Skill> {
  if (URL.canParse(named)) return client.getSkill(named)
  const skills = await client.listSkills()
  const found = skills.filter(({ frontmatter }) => frontmatter.name === named)
  const [skill, other] = found
  if (skill !== undefined && other === undefined) return skill
  const shown = (skill === undefined ? skills : found).map(({ uri }) => cleanLine(uri)).slice(0, 20)
  throw new UsageError(
    skill === undefined
      ? `${nameOf(client)} has no skill "${cleanLine(named)}". It has: ${shown.join(', ') || 'none'}.`
      : `${nameOf(client)} has several skills "${cleanLine(named)}". Use one of their URIs: ${shown.join(', ')}.`,
  )
}
