// The spans of a server: one for each request and for each run of a task, with steps as children, and asks and waits as events.
//
// The rounds of a flow may be days and machines apart, so they are spans of their own traces. Each later one has a link to the first,
// whose context is sealed with the flow.
import type { Attributes, Context, Link, Span } from '@opentelemetry/api'
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type {
  ObservedAsk,
  ObservedFlow,
  ObservedRound,
  ObservedStep,
  ObservedTask,
  ObservedWait,
  Observer,
} from '../flow/observer.ts'
import { METHOD_NOT_FOUND } from '../protocol/errors.ts'
import {
  activeTraceparent,
  errorAttributes,
  errorTypeOf,
  linkTo,
  operationAttributes,
  spanName,
  writeTraceparent,
} from './attributes.ts'
import type { Instruments } from './instruments.ts'

export interface ServerTelemetryOptions {
  readonly recordArguments: boolean
  readonly recordExceptions: boolean
}

/** The longest value of `_meta` that is read as trace context or baggage. */
const MAX_CARRIED = 8_192

export class ServerTelemetry implements Required<Observer> {
  readonly #instruments: Instruments
  readonly #options: ServerTelemetryOptions
  /** The span that a pass runs in: that of its request or task. */
  readonly #spans = new WeakMap<ObservedFlow, Span>()
  /** The trace that a span has a link to. */
  readonly #linked = new WeakMap<Span, string>()

  constructor(instruments: Instruments, options: ServerTelemetryOptions) {
    this.#instruments = instruments
    this.#options = options
  }

  round(round: ObservedRound): ReturnType<Required<Observer>['round']> {
    const startedAt = performance.now()
    const attributes = operationAttributes(round)
    const { parent, links } = parentOf(round.meta)
    const options = { kind: SpanKind.SERVER, attributes: { ...attributes, ...this.#detailsOf(round) }, links }
    const span = this.#instruments.tracer.startSpan(spanName(round), options, parent)
    return {
      run: (work) => context.with(trace.setSpan(parent, span), work),
      end: ({ outcome, error }) => {
        const failed = errorAttributes(outcome, error?.code)
        // Clients may send any number of methods that do not exist.
        const named = error?.code === METHOD_NOT_FOUND ? { 'mcp.method.name': '_OTHER' } : {}
        if (error?.code === METHOD_NOT_FOUND) span.updateName('_OTHER')
        span.setAttributes({ ...failed, ...named, 'rally.outcome': outcome })
        if ('error.type' in failed) fail(span, error?.message)
        span.end()
        this.#instruments.record('server', startedAt, { ...attributes, ...failed, ...named })
      },
    }
  }

  flow(flow: ObservedFlow): ReturnType<Required<Observer>['flow']> {
    const span = trace.getActiveSpan()
    if (span === undefined) return undefined
    this.#spans.set(flow, span)
    span.setAttributes({ 'rally.flow': flow.flow, 'rally.round': flow.round, 'rally.carrier': flow.carrier })
    this.#link(span, flow.trace)
    return ({ outcome, error }) => {
      if (outcome !== 'failed') return
      span.setAttribute('rally.error', errorTypeOf(error))
      this.#recordException(span, error)
    }
  }

  step({ key, attempt, flow }: ObservedStep): ReturnType<Required<Observer>['step']> {
    const parent = context.active()
    const attributes = { 'rally.flow': flow.flow, 'rally.key': key, 'rally.step.attempt': attempt }
    // Keys of a loop differ by their index.
    const name = `step ${key.replaceAll(/\[[^\]]*\]/g, '[]')}`
    const span = this.#instruments.tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, parent)
    return {
      run: (work) => context.with(trace.setSpan(parent, span), work),
      end: ({ outcome, error }) => {
        if (outcome === 'failed') {
          span.setAttribute('error.type', errorTypeOf(error))
          fail(span)
          this.#recordException(span, error)
        }
        span.end()
      },
    }
  }

  ask({ key, kind, flow }: ObservedAsk): ReturnType<Required<Observer>['ask']> {
    const attributes = { 'rally.key': key, 'rally.ask.kind': kind }
    return ({ outcome }) => {
      const span = this.#spans.get(flow)
      if (outcome === 'open') span?.addEvent('rally.ask', attributes)
      else span?.addEvent('rally.answer', { ...attributes, 'rally.ask.action': outcome })
    }
  }

  wait({ for: what, keys, dueAt, flow }: ObservedWait): ReturnType<Required<Observer>['wait']> {
    const startTime = Date.now()
    const due = dueAt === undefined ? {} : { 'rally.wait.due': new Date(dueAt).toISOString() }
    const attributes = { 'rally.wait.for': what, 'rally.wait.keys': [...keys], ...due }
    return ({ outcome }) => {
      const span = this.#spans.get(flow)
      if (span === undefined) return
      if (outcome === 'released') return void span.addEvent('rally.wait', attributes)
      const parent = trace.setSpan(ROOT_CONTEXT, span)
      this.#instruments.tracer.startSpan(`wait for ${what}`, { startTime, attributes }, parent).end()
    }
  }

  task({ tool, task, flow, lost, trace: begun }: ObservedTask): ReturnType<Required<Observer>['task']> {
    const attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool,
      'rally.task': task,
      'rally.flow': flow,
      'rally.task.taken_over': lost,
    }
    const link = linkTo(begun, FLOW_LINK)
    const options = { kind: SpanKind.CONSUMER, attributes, ...(link && { links: [link] }) }
    const span = this.#instruments.tracer.startSpan(`task ${tool}`, options, ROOT_CONTEXT)
    if (begun !== undefined) this.#linked.set(span, begun)
    return {
      run: (work) => context.with(trace.setSpan(ROOT_CONTEXT, span), work),
      end: ({ outcome }) => {
        span.setAttribute('rally.outcome', outcome)
        if (outcome === 'failed') {
          span.setAttribute('error.type', 'tool_error')
          fail(span)
        }
        span.end()
      },
    }
  }

  trace(): string | undefined {
    return activeTraceparent()
  }

  /** Links the span to the first round of the flow, unless it is that one. */
  #link(span: Span, begun: string | undefined): void {
    if (begun === undefined || this.#linked.get(span) === begun || writeTraceparent(span.spanContext()) === begun)
      return
    const link = linkTo(begun, FLOW_LINK)
    if (link !== undefined) span.addLink(link)
    this.#linked.set(span, begun)
  }

  #detailsOf({ method, target, id, params }: ObservedRound): Attributes {
    const args = this.#options.recordArguments && method === 'tools/call' ? params?.['arguments'] : undefined
    return {
      'jsonrpc.request.id': String(id),
      ...(method === 'resources/read' && target !== undefined && { 'mcp.resource.uri': target }),
      ...(args !== undefined && { 'gen_ai.tool.call.arguments': JSON.stringify(args) }),
    }
  }

  #recordException(span: Span, error: unknown): void {
    if (!this.#options.recordExceptions) return
    span.recordException(error instanceof Error ? error : String(error))
  }
}

const FLOW_LINK: Attributes = { 'rally.link': 'flow' }

/** The caller's span is the parent. What is active, such as the span of the HTTP request, is then linked. */
function parentOf(meta: Readonly<Record<string, unknown>> | undefined): { parent: Context; links: Link[] } {
  const ambient = context.active()
  if (meta === undefined) return { parent: ambient, links: [] }
  const parent = propagation.extract(ambient, meta, META)
  const ambientSpan = trace.getSpanContext(ambient)
  const isCarried = trace.getSpanContext(parent) !== ambientSpan
  return { parent, links: isCarried && ambientSpan !== undefined ? [{ context: ambientSpan }] : [] }
}

/** Untrusted: what is not a short text is not there. */
const META = {
  keys: (meta: Readonly<Record<string, unknown>>): string[] => Object.keys(meta),
  get(meta: Readonly<Record<string, unknown>>, key: string): string | undefined {
    const value = Object.hasOwn(meta, key) ? meta[key] : undefined
    return typeof value === 'string' && value.length <= MAX_CARRIED ? value : undefined
  },
}

function fail(span: Span, message?: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
}
