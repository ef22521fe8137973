// The examples in the texts of the drafts: what is asked, what is answered, and what comes of it.
import { expect } from 'vitest'

export const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

export const LOGIN = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Please provide your GitHub username',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
}
export const CAPITAL = {
  method: 'sampling/createMessage',
  params: {
    messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
    modelPreferences: { hints: [{ name: 'claude-3-sonnet' }], intelligencePriority: 0.8, speedPriority: 0.5 },
    systemPrompt: 'You are a helpful assistant.',
    maxTokens: 100,
  },
}
export const OCTOCAT = { action: 'accept', content: { name: 'octocat' } }
export const PARIS = {
  role: 'assistant',
  content: { type: 'text', text: 'The capital of France is Paris.' },
  model: 'claude-3-sonnet-20240307',
  stopReason: 'endTurn',
}
export const WEATHER = 'Current weather in New York:\nTemperature: 72\u00b0F\nConditions: Partly cloudy'

export const NEW_YORK = { name: 'get_weather', arguments: { location: 'New York' } }

export const text = (said: string): object => ({ content: [{ type: 'text', text: said }] })

export function request(id: number, params: object, beside: object = {}, method = 'tools/call'): object {
  return { jsonrpc: '2.0', id, method, params, ...beside }
}

/** Of our server, which nobody else can read. */
export const ANY_STATE = expect.stringMatching(/^rs1\./) as string
