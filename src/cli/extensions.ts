// What a terminal can do with extensions of the protocol: read a skill, and send a request for a method of the server's own.
import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import type { Skill } from '../protocol/skills.ts'
import { SKILL_FILE } from '../protocol/skills.ts'
import { readArguments, readJsonObject } from './arguments.ts'
import { clean, cleanJson, cleanLine } from './clean.ts'
import type { CommandContext } from './command.ts'
import { noMore, withServerOptions } from './command.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, UsageError } from './exit.ts'
import type { Server } from './server.ts'
import type { RunContext, ServerOptions } from './session.ts'
import { nameOf, withClient } from './session.ts'

export function addSkill(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withServerOptions(program.command('skill').usage('<server> <name or uri> [file] [options]'))
    .description('print a file of a skill, by default its SKILL.md, after verifying it')
    .argument('[words...]')
    .action(async (words: string[], options: ServerOptions) => {
      const { server, rest } = await serverOf(words, options)
      const [named, path, ...others] = rest
      if (named === undefined) throw new UsageError('Which skill? npx mcp-rally skills <server> lists them.')
      noMore(others)
      return run(runSkill(server, { named, path }, options, runContext))
    })
}

export function addRequest(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withServerOptions(program.command('request').usage('<server> <method> [key=value...] [options]'))
    .description("send a request for a method of the server's own")
    .argument('[words...]')
    .option('--args <json>', 'params as one JSON object')
    .action(async (words: string[], options: ServerOptions & { args?: string }) => {
      const { server, rest } = await serverOf(words, options)
      const [method, ...pairs] = rest
      if (method === undefined) throw new UsageError('Which method? It has a name such as com.example/thing.')
      const given = options.args === undefined ? {} : readJsonObject(options.args, '--args')
      return run(runRequest(server, { method, params: readArguments(pairs, {}, given) }, options, runContext))
    })
}

/** Prints a file of a skill, verified. `named` is the name of the skill or the URI of its SKILL.md. */
function runSkill(
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
function runRequest(
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
