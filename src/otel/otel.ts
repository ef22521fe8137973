// OpenTelemetry for servers and clients. Spans and metrics follow the GenAI semantic conventions for MCP.
import type { MeterProvider, TracerProvider } from '@opentelemetry/api'
import type { ClientObserver } from '../client/observer.ts'
import type { Observer } from '../flow/observer.ts'
import { atCaller, RallyError } from '../protocol/errors.ts'
import { shown } from '../protocol/text.ts'
import { ClientTelemetry } from './client.ts'
import { Instruments } from './instruments.ts'
import { ServerTelemetry } from './server.ts'

/** Options of the observers for OpenTelemetry. */
export interface OtelOptions {
  /** Makes the spans. Default: the global one. */
  tracerProvider?: TracerProvider
  /** Makes the histograms. Default: the global one, as it is at the first request. */
  meterProvider?: MeterProvider
  /** Records the arguments of tools in spans. They may be personal. Default: false. */
  recordArguments?: boolean
  /** Records the message and the stack of errors in spans. They may contain secrets of other systems. Default: false. */
  recordExceptions?: boolean
}

/**
 * Spans and metrics for a server, a client, or both. Register the OpenTelemetry SDK first; without one it does nothing.
 *
 * @example
 * const app = rally({ name: 'shop', version: '1.0.0', observers: [otel()] })
 * const client = await connect('http://127.0.0.1:3000/mcp', { observers: [otel()] })
 */
export function otel(options: OtelOptions = {}): Observer & ClientObserver {
  const { tracerProvider, meterProvider, recordArguments = false, recordExceptions = false } = options
  atCaller(otel, () => checkRecording({ recordArguments, recordExceptions }))
  const providers = { tracerProvider, meterProvider }
  const server = new ServerTelemetry(new Instruments(providers), { recordArguments, recordExceptions })
  const client = new ClientTelemetry(new Instruments(providers), recordArguments)
  return {
    round: (round) => server.round(round),
    flow: (flow) => server.flow(flow),
    step: (step) => server.step(step),
    ask: (ask) => server.ask(ask),
    wait: (wait) => server.wait(wait),
    task: (task) => server.task(task),
    trace: () => server.trace(),
    request: (request) => client.request(request),
  }
}

/** A string such as 'false', from the environment, must not record secrets. Not of `protocol/options.ts`, which loads more. */
function checkRecording(options: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === 'boolean') continue
    throw new RallyError('OPTION_INVALID', `otel(): \`${name}\` must be true or false, got ${shown(value)}.`)
  }
}
