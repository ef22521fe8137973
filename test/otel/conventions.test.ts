// Spans and metrics in the words of the GenAI semantic conventions for MCP, from the real SDK.
import { PassThrough } from 'node:stream'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { HistogramMetricData } from '@opentelemetry/sdk-metrics'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import type { Rally } from 'mcp-rally'
import { ProtocolError, rally, send, ToolError } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { serve, stdio } from 'mcp-rally/node'
import type { OtelOptions } from 'mcp-rally/otel'
import { otel } from 'mcp-rally/otel'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { call, request } from '../wire/messages.ts'
import { exporter, providerOf } from './tree.ts'

const tracerProvider = providerOf('a')
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const TRACEPARENT = `00-${TRACE}-${PARENT}-01`

beforeAll(() => providerOf('a').register())
beforeEach(() => exporter.reset())
afterAll(() => {
  trace.disable()
  context.disable()
  propagation.disable()
})

function newApp(options: OtelOptions = {}): Rally {
  const app = rally({
    name: 'shop',
    version: '1',
    keys: ['a secret of the conventions, long enough for it'],
    logger: { warn() {}, error() {} },
    observers: [otel({ tracerProvider, ...options })],
  })
  return app
    .tool('greet', { input: z.object({ name: z.string().optional() }) }, () => 'Hello.')
    .tool('fails', {}, async (_args, io) => {
      await io.step('pay[3]', () => {
        throw Object.assign(new Error('password=hunter2'), { code: 'ECONNREFUSED' })
      })
      return ''
    })
    .tool('says', {}, () => {
      throw new ToolError('No.')
    })
    .tool('protocol', {}, () => {
      throw new ProtocolError(-32000, 'Not here.')
    })
    .prompt('p', {}, () => 'a prompt')
    .resource('a://b', { name: 'b' }, () => 'a resource')
}

function onlySpan(name: string): ReadableSpan {
  const found = exporter.getFinishedSpans().filter((span) => span.name === name)
  const [span] = found
  if (found.length !== 1 || span === undefined) {
    throw new Error(
      `${found.length} spans are called ${name}, of ${exporter
        .getFinishedSpans()
        .map((each) => each.name)
        .join()}`,
    )
  }
  return span
}

test.each([
  {
    message: call('greet', { name: 'Ada' }),
    name: 'tools/call greet',
    has: { 'gen_ai.tool.name': 'greet', 'gen_ai.operation.name': 'execute_tool' },
  },
  { message: request('prompts/get', { name: 'p' }), name: 'prompts/get p', has: { 'gen_ai.prompt.name': 'p' } },
  {
    message: request('resources/read', { uri: 'a://b' }),
    name: 'resources/read',
    has: { 'mcp.resource.uri': 'a://b' },
  },
  { message: request('tools/list'), name: 'tools/list', has: {} },
])('the span of $name', async ({ message, name, has }) => {
  await send(newApp(), message)
  const { kind, attributes, status, parentSpanContext } = onlySpan(name)
  const flow = { 'rally.flow': expect.any(String) as string, 'rally.round': 0, 'rally.carrier': 'client' }
  expect({ kind, attributes, status, parentSpanContext }).toEqual({
    kind: SpanKind.SERVER,
    attributes: {
      'mcp.method.name': message.method,
      'mcp.protocol.version': '2026-07-28',
      'jsonrpc.request.id': String(message.id),
      'rally.outcome': 'complete',
      ...has,
      ...(name !== 'tools/list' && flow),
    },
    status: { code: SpanStatusCode.UNSET },
    parentSpanContext: undefined,
  })
})

test.each([
  { message: call('says'), name: 'tools/call says', has: { 'error.type': 'tool_error' }, told: undefined },
  {
    message: call('protocol'),
    name: 'tools/call protocol',
    has: { 'error.type': '-32000', 'rpc.response.status_code': '-32000' },
    told: 'Not here.',
  },
  {
    message: call('nothing'),
    name: 'tools/call',
    has: { 'error.type': '-32602', 'rpc.response.status_code': '-32602' },
    told: 'Unknown tool: nothing',
  },
  {
    message: request('made/up'),
    name: '_OTHER',
    has: { 'error.type': '-32601', 'mcp.method.name': '_OTHER' },
    told: 'Method not found: made/up',
  },
])('the error of $name', async ({ message, name, has, told }) => {
  await send(newApp(), message)
  const { attributes, status } = onlySpan(name)
  expect(attributes).toMatchObject(has)
  expect(status).toEqual({ code: SpanStatusCode.ERROR, ...(told !== undefined && { message: told }) })
})

test('a step is a child, named without its index, and no message of its error is in any span', async () => {
  await send(newApp({}), call('fails'))
  const step = onlySpan('step pay[]')
  expect(step.parentSpanContext?.spanId).toBe(onlySpan('tools/call fails').spanContext().spanId)
  expect(step.attributes).toMatchObject({
    'rally.key': 'pay[3]',
    'rally.step.attempt': 1,
    'error.type': 'ECONNREFUSED',
  })
  const text = JSON.stringify(
    exporter.getFinishedSpans().map(({ attributes, status, events }) => [attributes, status, events]),
  )
  expect(text).not.toContain('hunter2')
  exporter.reset()
  await send(newApp({ recordExceptions: true }), call('fails'))
  expect(onlySpan('step pay[]').events).toMatchObject([{ name: 'exception' }])
})

test('arguments are recorded only if that is asked for', async () => {
  await send(newApp(), call('greet', { name: 'Ada' }))
  expect(onlySpan('tools/call greet').attributes).not.toHaveProperty(['gen_ai.tool.call.arguments'])
  exporter.reset()
  await send(newApp({ recordArguments: true }), call('greet', { name: 'Ada' }))
  expect(onlySpan('tools/call greet').attributes).toMatchObject({ 'gen_ai.tool.call.arguments': '{"name":"Ada"}' })
})

test('the parent is in _meta, and the span that is active is linked', async () => {
  const app = newApp()
  const ambient = tracerProvider.getTracer('http').startSpan('POST /mcp')
  await context.with(trace.setSpan(context.active(), ambient), () =>
    send(app, call('greet', {}, {}, { traceparent: TRACEPARENT })),
  )
  ambient.end()
  const { parentSpanContext, links } = onlySpan('tools/call greet')
  expect(parentSpanContext).toMatchObject({ traceId: TRACE, spanId: PARENT, isRemote: true })
  expect(links.map((link) => link.context.spanId)).toEqual([ambient.spanContext().spanId])
  exporter.reset()
  await context.with(trace.setSpan(context.active(), ambient), () => send(app, call('greet')))
  expect(onlySpan('tools/call greet').parentSpanContext?.spanId).toBe(ambient.spanContext().spanId)
})

test.each([{ traceparent: 7 }, { traceparent: 'x'.repeat(100_000) }, { traceparent: '00-zz-zz-01', tracestate: {} }])(
  'a trace context that is not valid is ignored (%#)',
  async (meta) => {
    await send(newApp(), call('greet', {}, {}, meta))
    expect(onlySpan('tools/call greet').parentSpanContext).toBeUndefined()
  },
)

test.each(['2026-07-28', '2025-11-25', '2026-06-XX'])(
  'the client of %s makes the parent, over HTTP, and sends it',
  async (revision) => {
    const app = rally({
      name: 'shop',
      version: '1',
      revisions: ['2026-06-XX'],
      observers: [otel({ tracerProvider })],
    }).tool('greet', {}, () => 'Hello.')
    const { url, close } = await serve(app, { port: 0, handleSignals: false })
    const client = await connect(url, { revision, observers: [otel({ tracerProvider: providerOf('client') })] })
    exporter.reset()
    await client.callTool('greet', {})
    await client.close()
    await close()
    const spans = exporter.getFinishedSpans().filter(({ name }) => name === 'tools/call greet')
    const server = spans.find(({ kind }) => kind === SpanKind.SERVER)
    const caller = spans.find(({ kind }) => kind === SpanKind.CLIENT)
    expect(server?.parentSpanContext?.spanId).toBe(caller?.spanContext().spanId)
    const network = { 'network.transport': 'tcp', 'network.protocol.name': 'http', 'mcp.protocol.version': revision }
    expect(server?.attributes).toMatchObject(network)
    expect(caller?.attributes).toEqual({
      ...network,
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': 'greet',
      'gen_ai.operation.name': 'execute_tool',
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(url).port),
      'rally.outcome': 'complete',
    })
  },
)

test('over standard streams the transport is a pipe', async () => {
  const input = new PassThrough()
  const output = new PassThrough()
  const over = stdio(newApp(), { input, output })
  const answered = new Promise((resolve) => void output.once('data', resolve))
  input.write(`${JSON.stringify(call('greet'))}\n`)
  await answered
  input.end()
  await over
  expect(onlySpan('tools/call greet').attributes).toMatchObject({ 'network.transport': 'pipe' })
})

test('the histograms of both sides', async () => {
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 3_600_000 })
  const meterProvider = new MeterProvider({ readers: [reader] })
  const app = newApp({ meterProvider })
  const client = await connect(app, { observers: [otel({ tracerProvider, meterProvider })] })
  await client.callTool('greet', {})
  await client.callTool('says', {})
  await client.close()
  await meterProvider.forceFlush()
  const collected = metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
  const metrics = collected.flatMap((scope) => scope.metrics) as HistogramMetricData[]
  expect(new Map(metrics.map(({ descriptor }) => [descriptor.name, descriptor.unit]))).toEqual(
    new Map([
      ['mcp.server.operation.duration', 's'],
      ['mcp.client.operation.duration', 's'],
    ]),
  )
  for (const { dataPoints } of metrics) {
    const point = dataPoints.find(({ attributes }) => attributes['gen_ai.tool.name'] === 'says')
    expect(point?.attributes).toMatchObject({ 'mcp.method.name': 'tools/call', 'error.type': 'tool_error' })
    expect(point?.value.count).toBe(1)
    expect(point?.value.buckets.boundaries).toEqual([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300])
    for (const { attributes } of dataPoints) expect(attributes).not.toHaveProperty(['jsonrpc.request.id'])
  }
  await meterProvider.shutdown()
})
