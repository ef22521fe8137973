// The attributes of spans and metrics: the GenAI semantic conventions for MCP, and `rally.*` for what they do not name.
import type { Attributes, Link, SpanContext } from '@opentelemetry/api'
import { isSpanContextValid, trace } from '@opentelemetry/api'

/** A request, as both sides see it. */
export interface Operation {
  readonly method: string
  readonly target: string | undefined
  readonly revision: string
  readonly transport: 'tcp' | 'pipe' | undefined
}

/** Attributes that are few enough for metrics too. */
export function operationAttributes({ method, target, revision, transport }: Operation): Attributes {
  return {
    'mcp.method.name': method,
    'mcp.protocol.version': revision,
    ...(method === 'tools/call' && {
      'gen_ai.operation.name': 'execute_tool',
      ...(target !== undefined && { 'gen_ai.tool.name': target }),
    }),
    ...(method === 'prompts/get' && target !== undefined && { 'gen_ai.prompt.name': target }),
    ...(transport !== undefined && { 'network.transport': transport }),
    ...(transport === 'tcp' && { 'network.protocol.name': 'http' }),
  }
}

/** The URI of a resource is not part of the name: there may be any number of them. */
export function spanName({ method, target }: Operation): string {
  return target === undefined || method === 'resources/read' ? method : `${method} ${target}`
}

/** Of a JSON-RPC error its code, of a tool's result that reports a failure `tool_error`. */
export function errorAttributes(outcome: string, code: number | string | undefined): Attributes {
  if (outcome === 'tool_error') return { 'error.type': 'tool_error' }
  if (code === undefined) return {}
  const isRpc = typeof code === 'number'
  return { 'error.type': String(code), ...(isRpc && { 'rpc.response.status_code': String(code) }) }
}

/** The name of an error, or its code: its message may contain secrets of other systems. */
export function errorTypeOf(error: unknown): string {
  const { code, name } = (typeof error === 'object' && error !== null ? error : {}) as {
    code?: unknown
    name?: unknown
  }
  if (typeof code === 'string' || typeof code === 'number') return String(code).slice(0, 100)
  return typeof name === 'string' && name !== '' ? name.slice(0, 100) : '_OTHER'
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** A span context as the text of the header `traceparent`. */
export function writeTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/** A link to the span of a `traceparent`; `undefined` if the text is not one. */
export function linkTo(traceparent: string | undefined, attributes: Attributes): Link | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  const context: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(context) ? { context, attributes } : undefined
}

/** The traceparent of the span that is active now. */
export function activeTraceparent(): string | undefined {
  const context = trace.getActiveSpan()?.spanContext()
  return context !== undefined && isSpanContextValid(context) ? writeTraceparent(context) : undefined
}
