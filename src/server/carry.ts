// The three requests that may take several rounds.
import type { Context, DispatchHost } from './context.ts'
import { readRound } from './params.ts'
import { LONGEST_URI } from './registry.ts'
import type { RequestInfo } from './request.ts'
import { invalidParams } from './request.ts'
import { carriedResource } from './resource.ts'
import { serveRound } from './round.ts'

type Params = Record<string, unknown>
type ResultText = Promise<string | undefined>

export function callTool(host: DispatchHost, params: Params, info: RequestInfo, context: Context): ResultText {
  const { name } = params
  if (typeof name !== 'string') throw invalidParams('name must be a string')
  const tool = host.registry.tools.get(name)
  if (tool === undefined) throw invalidParams(`Unknown tool: ${name.slice(0, 128)}`)
  return serveRound(host, tool, readRound(params, info, context))
}

export function getPrompt(host: DispatchHost, params: Params, info: RequestInfo, context: Context): ResultText {
  const { name } = params
  if (typeof name !== 'string') throw invalidParams('name must be a string')
  const prompt = host.registry.prompts.get(name)
  if (prompt === undefined) throw invalidParams(`Unknown prompt: ${name.slice(0, 128)}`)
  const request = readRound(params, info, context)
  if (!Object.values(request.args).every((value) => typeof value === 'string')) {
    throw invalidParams('the arguments of a prompt must be strings')
  }
  return serveRound(host, prompt, request)
}

export function readResource(host: DispatchHost, params: Params, info: RequestInfo, context: Context): ResultText {
  const { uri } = params
  if (typeof uri !== 'string' || uri.length > LONGEST_URI) {
    throw invalidParams(`uri must be a string of at most ${LONGEST_URI} characters`)
  }
  const found = host.registry.findResource(uri)
  if (found === undefined) throw invalidParams(`Resource not found: ${uri}`, { uri })
  // The URI alone says what is read.
  const request = readRound({ ...params, arguments: {} }, info, context)
  return serveRound(host, carriedResource(uri, found.resource, found.variables), request)
}
