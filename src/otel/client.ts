// The spans of a client: one for each request, whose context travels in `_meta` (SEP-414).
import type { Attributes, SpanContext } from '@opentelemetry/api'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { ClientObserver, ObservedRequest, RequestObservation } from '../client/observer.ts'
import { errorAttributes, operationAttributes, spanName } from './attributes.ts'
import type { Instruments } from './instruments.ts'

export class ClientTelemetry implements Required<ClientObserver> {
  readonly #instruments: Instruments
  readonly #recordArguments: boolean
  /** The span of the first round of each call. */
  readonly #firstRounds = new WeakMap<object, SpanContext>()

  constructor(instruments: Instruments, recordArguments: boolean) {
    this.#instruments = instruments
    this.#recordArguments = recordArguments
  }

  request(request: ObservedRequest): RequestObservation {
    const startedAt = performance.now()
    const { method, target, args, call, server } = request
    const { address, port, transport } = server
    const attributes: Attributes = {
      ...operationAttributes({ ...request, transport }),
      ...(address !== undefined && { 'server.address': address }),
      ...(port !== undefined && { 'server.port': port }),
    }
    const details: Attributes = {
      ...(method === 'resources/read' && target !== undefined && { 'mcp.resource.uri': target }),
      ...(this.#recordArguments && args !== undefined && { 'gen_ai.tool.call.arguments': JSON.stringify(args) }),
    }
    const first = call && this.#firstRounds.get(call)
    const links = first === undefined ? [] : [{ context: first, attributes: { 'rally.link': 'flow' } }]
    const options = { kind: SpanKind.CLIENT, attributes: { ...attributes, ...details }, links }
    const parent = context.active()
    const span = this.#instruments.tracer.startSpan(spanName({ ...request, transport }), options, parent)
    if (call !== undefined && first === undefined) this.#firstRounds.set(call, span.spanContext())
    const meta: Record<string, string> = {}
    propagation.inject(trace.setSpan(parent, span), meta)
    return {
      meta,
      end: ({ outcome, error }) => {
        const failed = errorAttributes(outcome, error?.code)
        span.setAttributes({ ...failed, 'rally.outcome': outcome })
        if ('error.type' in failed) {
          span.setStatus({ code: SpanStatusCode.ERROR, ...(error !== undefined && { message: error.message }) })
        }
        span.end()
        this.#instruments.record('client', startedAt, { ...attributes, ...failed })
      },
    }
  }
}
