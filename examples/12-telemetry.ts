// Spans of every request and step. Each later round of a call links to its first one, over days and machines.
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { rally } from 'mcp-rally'
import { otel } from 'mcp-rally/otel'

/** Keeps the spans in memory. Use the exporter of your backend. */
export const exporter = new InMemorySpanExporter()
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()

export const app = rally({ name: 'shop', version: '1.0.0', observers: [otel()] })

app.tool('order', {}, async (_args, io) => {
  if (!(await io.confirm('pay', 'Pay 12 EUR?'))) return 'Not ordered.'
  await io.step('charge', () => undefined)
  return 'Ordered.'
})
