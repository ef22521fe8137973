// Registers a prompt, and turns what its handler returns into messages.
import { isObject } from '../protocol/json.ts'
import type { Asks, Io } from '../flow/io.ts'
import type { Requirements, ResolvedNeeds } from '../flow/resolver.ts'
import { toCheck } from '../schema/validator.ts'
import { INTERNAL_ERROR, ProtocolError, RallyError } from '../protocol/errors.ts'
import type { ContentBlock, Icon, Meta, Prompt, PromptArgument, PromptMessage } from '../protocol/messages.ts'
import type { Output, Schema } from '../schema/standard.ts'
import { jsonSchemaOf } from '../schema/standard.ts'
import type { CompletionSource, Completers } from './completion.ts'
import { prepareCompleters } from './completion.ts'
import { isBlock, withServerMeta } from './content.ts'
import type { AnotherRound, Handled, HandlerOptions, ReturnWithNeeds } from './handler.ts'
import { checkedRun, checkNone, NO_ARGUMENTS, pick, prepareHandler } from './handler.ts'
import { invalidParams } from './request.ts'
import type { Target } from './round.ts'
import { tellFailure } from './failure.ts'

/** Options of `app.prompt()`. */
export interface PromptOptions<I extends Schema, A extends Asks, N> extends HandlerOptions<A, N> {
  /** The name that people see. Default: none. */
  title?: string
  /** What the prompt is for. Default: none. */
  description?: string
  /** The schema of the arguments: an object of strings, because people type them in. Default: no arguments. */
  arguments?: I
  /** Suggestions for arguments, by name. Default: none. */
  complete?: Readonly<Record<string, CompletionSource>>
  /** Icons for clients to show. Default: none. */
  icons?: Icon[]
  /** Sent with the prompt in `prompts/list`. Default: none. */
  _meta?: Meta
}

/** A text or a content block becomes one message of the user. */
export type PromptReturn = string | ContentBlock | PromptMessage[] | PromptResult | AnotherRound

/** The messages of a prompt, where a string is not enough. */
export interface PromptResult {
  /** The messages, in their order. */
  messages: PromptMessage[]
  /** What the messages are for. Default: none. */
  description?: string
  /** Sent with the result. Default: none. */
  _meta?: Meta
}

/** Makes the messages of a prompt. Like a tool, it may ask and take several rounds. */
export type PromptHandler<I extends Schema, A extends Asks, N> = (
  args: Output<I>,
  io: Io<A>,
  needs: ResolvedNeeds<N>,
) => ReturnWithNeeds<PromptReturn, N> | Promise<ReturnWithNeeds<PromptReturn, N>>

export interface RegisteredPrompt extends Handled, Target {
  readonly arguments: readonly string[]
  readonly completers: Completers
  /** Its entry in `prompts/list`. */
  readonly listing: Prompt
}

export function registerPrompt<I extends Schema, A extends Asks, N extends Requirements<Output<I>>>(
  name: string,
  options: PromptOptions<I, A, N>,
  handler: PromptHandler<I, A, N>,
): RegisteredPrompt {
  if (typeof name !== 'string' || name === '') {
    throw new RallyError('PROMPT_INVALID', 'A prompt needs a name. Write app.prompt(name, options, handler).')
  }
  const where = `Prompt "${name}"`
  if (typeof options !== 'object' || options === null) {
    throw new RallyError(
      'PROMPT_INVALID',
      `${where} needs options and a handler. Write app.prompt(name, options, handler).`,
    )
  }
  const { arguments: schema, complete } = options
  const listed = promptArguments(schema ?? NO_ARGUMENTS, where)
  const listing: Prompt = {
    name,
    ...pick(options, ['title', 'description', 'icons', '_meta']),
    ...(listed.length > 0 && { arguments: listed }),
  }
  const names = listed.map((argument) => argument.name)
  const handled = prepareHandler(where, options, handler)
  const check = schema === undefined ? checkNone : toCheck(schema, `The arguments of prompt "${name}"`)
  return {
    ...handled,
    method: 'prompts/get',
    target: name,
    run: checkedRun(handled.run, check, (issues) =>
      invalidParams(`Invalid arguments for ${name}: ${issues.join('; ')}`),
    ),
    resultText: (value, { serverMeta }) => promptText(value, serverMeta),
    failureText: tellFailure,
    arguments: names,
    completers: prepareCompleters(complete, names, where),
    listing,
  }
}

function promptArguments(schema: Schema, where: string): PromptArgument[] {
  const { type, properties = {}, required } = jsonSchemaOf(schema, 'input', `${where}, arguments`)
  if (type !== 'object' || !isObject(properties)) {
    throw new RallyError(
      'PROMPT_INVALID',
      `${where}: \`arguments\` must be an object schema, because arguments have names.`,
    )
  }
  const mandatory: unknown[] = Array.isArray(required) ? required : []
  return Object.entries(properties).map(([name, property]) =>
    promptArgument(name, isObject(property) ? property : {}, mandatory.includes(name), where),
  )
}

function promptArgument(
  name: string,
  { type, title, description }: Record<string, unknown>,
  required: boolean,
  where: string,
): PromptArgument {
  if (type !== undefined && type !== 'string') {
    throw new RallyError(
      'PROMPT_INVALID',
      `${where}: the argument "${name}" must be a string, because the protocol sends strings. Convert it with a transform, such as z.string().transform(Number), or in the handler.`,
    )
  }
  return {
    name,
    ...(typeof title === 'string' && { title }),
    ...(typeof description === 'string' && { description }),
    ...(required && { required }),
  }
}

/** The text of a `prompts/get` result. */
function promptText(value: unknown, serverMeta: string): string {
  const { messages, description, _meta } = toResult(value)
  const descriptionText = description === undefined ? '' : `"description":${JSON.stringify(description)},`
  return `{"resultType":"complete",${descriptionText}"messages":${JSON.stringify(messages)},"_meta":${withServerMeta(_meta, serverMeta)}}`
}

function toResult(value: unknown): PromptResult {
  if (typeof value === 'string') return { messages: [{ role: 'user', content: { type: 'text', text: value } }] }
  if (isBlock(value)) return { messages: [{ role: 'user', content: value }] }
  if (Array.isArray(value) && value.every(isMessage)) return { messages: value }
  if (isObject(value) && Array.isArray(value['messages']) && value['messages'].every(isMessage)) {
    return value as unknown as PromptResult
  }
  throw new ProtocolError(
    INTERNAL_ERROR,
    'The prompt returned no messages. Return a text, a content block, a list of { role, content }, or { messages }.',
  )
}

function isMessage(value: unknown): value is PromptMessage {
  return isObject(value) && (value['role'] === 'user' || value['role'] === 'assistant') && isBlock(value['content'])
}
