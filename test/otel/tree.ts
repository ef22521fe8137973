// Spans of the real SDK, kept in memory, and printed as a tree.
import type { Link } from '@opentelemetry/api'
import { SpanKind } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'

export const exporter = new InMemorySpanExporter()

/** What one instance of a fleet would have. All export to the same place. */
export function providerOf(instance: string): NodeTracerProvider {
  return new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.instance.id': instance }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  })
}

const SHOWN = ['rally.round', 'rally.outcome', 'rally.task.taken_over', 'error.type']

/** Every trace as a tree, the earliest first. A link says to which trace it leads. */
export function treeOf(spans: readonly ReadableSpan[]): string {
  const inOrder = spans.toSorted((one, other) => startOf(one) - startOf(other))
  const traces = [...new Set(inOrder.map((span) => span.spanContext().traceId))]
  const isRoot = ({ parentSpanContext: parent }: ReadableSpan): boolean =>
    !inOrder.some((span) => span.spanContext().spanId === parent?.spanId)
  const linkText = ({ context }: Link): string => {
    const to = inOrder.find((span) => span.spanContext().spanId === context.spanId)
    return to === undefined ? '' : `  ↪ ${to.name} of trace ${traces.indexOf(context.traceId) + 1}`
  }
  const lines: string[] = []
  const write = (span: ReadableSpan, depth: number): void => {
    const { kind, name, attributes, events, links, resource } = span
    const instance = String(resource.attributes['service.instance.id'])
    const shown = SHOWN.flatMap((key) => (attributes[key] === undefined ? [] : [`${key}=${String(attributes[key])}`]))
    const indent = '  '.repeat(depth)
    const links2 = links.map(linkText).join('')
    lines.push(`${indent}${SpanKind[kind]} ${name} @${instance} ${shown.join(' ')}${links2}`.trimEnd())
    for (const event of events) {
      const { 'rally.key': key, 'rally.wait.for': what, 'rally.ask.action': action } = event.attributes ?? {}
      const text = [event.name, key ?? what, action].filter((each) => each !== undefined).join(' ')
      lines.push(`${indent}  · ${text}`)
    }
    for (const child of inOrder) {
      if (child.parentSpanContext?.spanId === span.spanContext().spanId) write(child, depth + 1)
    }
  }
  for (const [index, traceId] of traces.entries()) {
    lines.push(`trace ${index + 1}`)
    for (const span of inOrder) if (span.spanContext().traceId === traceId && isRoot(span)) write(span, 1)
  }
  return lines.join('\n')
}

function startOf({ startTime: [seconds, nanos] }: ReadableSpan): number {
  return seconds * 1e9 + nanos
}
