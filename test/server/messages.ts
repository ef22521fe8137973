// Requests beside those for tools, and apps to send them to.
import type { Rally, RallyOptions } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { JSONRPCResponse } from '../../src/protocol/messages.ts'
import type { Round, WireRequest } from '../wire/messages.ts'
import { request } from '../wire/messages.ts'
import type { Answer, Wire } from './wires.ts'
import { inMemory } from './wires.ts'

export const KEYS = ['a secret of the server tests, long enough']

export interface Logged {
  warnings: string[]
  errors: string[]
}

/** An app that logs into a list, so that a test can look at it and nobody else has to. */
export function makeApp(options: Partial<RallyOptions> = {}): { app: Rally; logged: Logged } {
  const logged: Logged = { warnings: [], errors: [] }
  const logger = {
    warn: (message: string) => void logged.warnings.push(message),
    error: (message: string) => void logged.errors.push(message),
  }
  return { app: rally({ name: 'whole', version: '1.0.0', keys: KEYS, logger, ...options }), logged }
}

export function prompt(name: string, args: object = {}, round: Round = {}, meta: object = {}): WireRequest {
  return request('prompts/get', { name, arguments: args, ...round }, meta)
}

export function read(uri: string, round: Round = {}, meta: object = {}): WireRequest {
  return request('resources/read', { uri, ...round }, meta)
}

export async function ask(wire: Wire, message: WireRequest): Promise<JSONRPCResponse | undefined> {
  return (await wire.open(message).answer()).response
}

/** One request to an app in the same process. */
export async function answerOf(app: Rally, message: WireRequest): Promise<Answer> {
  return (await inMemory.open(app)).open(message).answer()
}

export async function responseOf(app: Rally, message: WireRequest): Promise<JSONRPCResponse | undefined> {
  return (await answerOf(app, message)).response
}
