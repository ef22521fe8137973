// The tracer, and the histograms of both sides.
import type { Attributes, Histogram, MeterProvider, Tracer, TracerProvider } from '@opentelemetry/api'
import { metrics, trace } from '@opentelemetry/api'
import { VERSION } from '../protocol/version.ts'

const NAME = 'mcp-rally'

/** As the semantic conventions have them, in seconds. */
const BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]

export interface Providers {
  readonly tracerProvider: TracerProvider | undefined
  readonly meterProvider: MeterProvider | undefined
}

export class Instruments {
  readonly tracer: Tracer
  readonly #meterProvider: MeterProvider | undefined
  #histogram: Histogram | undefined

  constructor({ tracerProvider, meterProvider }: Providers) {
    this.tracer = (tracerProvider ?? trace.getTracerProvider()).getTracer(NAME, VERSION)
    this.#meterProvider = meterProvider
  }

  /** Records how long a request took. `startedAt` is of `performance.now()`. */
  record(side: 'server' | 'client', startedAt: number, attributes: Attributes): void {
    this.#histogram ??= this.#create(side)
    this.#histogram.record((performance.now() - startedAt) / 1_000, attributes)
  }

  /** With the first request: a provider that is set later than this would not be found. */
  #create(side: 'server' | 'client'): Histogram {
    const meter = (this.#meterProvider ?? metrics.getMeterProvider()).getMeter(NAME, VERSION)
    return meter.createHistogram(`mcp.${side}.operation.duration`, {
      unit: 's',
      description: `The duration of MCP requests, as the ${side} observes it.`,
      advice: { explicitBucketBoundaries: BUCKETS },
    })
  }
}
