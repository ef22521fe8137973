// The four things that may take several rounds, each with a handler of the same kind: one suite holds them to the same rules.
import type { Asks, HandlerOptions, InputRequired, Io, Requirements, Rally } from 'mcp-rally'
import type { Round, WireRequest } from '../wire/messages.ts'
import { call, errorOf, resultOf } from '../wire/messages.ts'
import { prompt, read } from './messages.ts'

export type Run = (
  io: Io,
  needs: Readonly<Record<string, unknown>>,
) => string | InputRequired | Promise<string | InputRequired>

/** The types refuse needs together with rounds by hand. So must the app. */
const typed = (run: Run): ((...given: Parameters<Run>) => string | Promise<string>) => run as () => string

type Options = HandlerOptions<Asks, Requirements<unknown>>

export interface Kind {
  readonly kind: string
  readonly register: (app: Rally, name: string, run: Run, options?: Options) => void
  readonly request: (name: string, round?: Round, meta?: object) => WireRequest
  /** The text of the final result. */
  readonly textOf: (response: object | undefined) => string
  /** The text of a failure, told in the way of this kind. */
  readonly failureOf: (response: object | undefined) => string
}

const tool: Kind = {
  kind: 'a tool',
  register: (app, name, run, options = {}) => app.tool(name, options, (_args, io, needs) => typed(run)(io, needs)),
  request: (name, round, meta) => call(name, {}, round, meta),
  textOf(response) {
    const { content, isError } = resultOf(response) as { content: { text: string }[]; isError?: boolean }
    if (isError !== undefined) throw new Error(`This should be no failure: ${JSON.stringify(response)}`)
    return content.map(({ text }) => text).join()
  },
  failureOf(response) {
    const { content, isError } = resultOf(response) as { content: { text: string }[]; isError?: boolean }
    if (isError !== true) throw new Error(`This should be a failure: ${JSON.stringify(response)}`)
    return content.map(({ text }) => text).join()
  },
}

const getPrompt: Kind = {
  kind: 'a prompt',
  register: (app, name, run, options = {}) => app.prompt(name, options, (_args, io, needs) => typed(run)(io, needs)),
  request: (name, round, meta) => prompt(name, {}, round, meta),
  textOf(response) {
    const { messages } = resultOf(response) as { messages: { content: { text: string } }[] }
    return messages.map(({ content }) => content.text).join()
  },
  failureOf: internalError,
}

const resource: Kind = {
  kind: 'a resource',
  register: (app, name, run, options = {}) =>
    app.resource(`test://fixed/${name}`, { name, ...options }, (io, needs) => typed(run)(io, needs)),
  request: (name, round, meta) => read(`test://fixed/${name}`, round, meta),
  textOf: contentsText,
  failureOf: internalError,
}

const template: Kind = {
  kind: 'a resource template',
  register: (app, name, run, options = {}) =>
    app.resourceTemplate(`test://{id}/${name}`, { name, ...options }, (_variables, io, needs) => typed(run)(io, needs)),
  request: (name, round, meta) => read(`test://7/${name}`, round, meta),
  textOf: contentsText,
  failureOf: internalError,
}

export const kinds: readonly Kind[] = [tool, getPrompt, resource, template]

function contentsText(response: object | undefined): string {
  const { contents } = resultOf(response) as { contents: { text: string }[] }
  return contents.map(({ text }) => text).join()
}

/** A failure that no result can tell is an error, and shows nothing but its message. */
function internalError(response: object | undefined): string {
  const { code, message, data } = errorOf(response)
  if (code !== -32603) throw new Error(`This should be an internal error: ${JSON.stringify(response)}`)
  if (/\n|\bat .*:\d+/.test(message + JSON.stringify(data ?? ''))) throw new Error(`This shows a stack: ${message}`)
  return message
}
