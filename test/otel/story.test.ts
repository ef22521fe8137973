// The story of docs/telemetry.md, told by the real SDK: a flow over two instances, and a task that a second worker takes over.
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { context, propagation, trace } from '@opentelemetry/api'
import type { Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { PendingTool } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { otel } from 'mcp-rally/otel'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { ROOT } from '../package/consumer.ts'
import { Caller as TaskCaller } from '../tasks/caller.ts'
import { LEASE_MS, Office } from '../tasks/office.ts'
import { accept } from '../wire/messages.ts'
import { exporter, providerOf, treeOf } from './tree.ts'

const PAGE = join(ROOT, 'docs/telemetry.md')

beforeAll(() => providerOf('a').register())
afterEach(() => exporter.reset())
afterAll(() => {
  trace.disable()
  context.disable()
  propagation.disable()
})

/** The page has the tree under this heading. With UPDATE_DOCS=1 it is written there. */
function expectOnPage(heading: string, tree: string): void {
  const page = readFileSync(PAGE, 'utf8')
  const start = page.indexOf('\n```\n', page.indexOf(`### ${heading}\n`)) + '\n```\n'.length
  const end = page.indexOf('```', start)
  if (process.env['UPDATE_DOCS'] !== undefined)
    writeFileSync(PAGE, `${page.slice(0, start)}${tree}\n${page.slice(end)}`)
  else expect(`${tree}\n`).toBe(page.slice(start, end))
}

function orders(instance: string): Rally {
  const app = rally({
    name: 'shop',
    version: '1',
    keys: ['a secret of the story, which is long enough'],
    observers: [otel({ tracerProvider: providerOf(instance) })],
  })
  return app.tool('order', {}, async (_args, io) => {
    const price = await io.step('price', async () => {
      // What a driver with an instrumentation would do.
      trace.getTracer('db').startSpan('SELECT price').end()
      return 7
    })
    const { n } = await io.ask('count', 'How many?', z.object({ n: z.number() }))
    return io.step('book', () => `${n * price}`)
  })
}

test('a flow over two instances', async () => {
  const first = await serve(orders('a'), { port: 0, handleSignals: false })
  const second = await serve(orders('b'), { port: 0, handleSignals: false })
  const client = providerOf('client')
  const observers = [otel({ tracerProvider: client })]
  const one = await connect(first.url, { observers, can: ['elicitation.form'] })
  const two = await connect(second.url, { observers, onElicit: () => accept({ n: 3 }) })
  exporter.reset()
  let saved = ''
  for await (const round of one.rounds({ tool: 'order' })) {
    if (round.kind !== 'asks') throw new Error('It should ask.')
    saved = JSON.stringify(round.pending)
    break
  }
  expect(await two.resume(JSON.parse(saved) as PendingTool)).toMatchObject({ content: [{ text: '21' }] })
  await one.close()
  await two.close()
  await first.close()
  await second.close()
  expectOnPage('A flow over two instances', treeOf(exporter.getFinishedSpans()))
})

test('a task that a second worker takes over', async () => {
  const office = new Office()
  const reaching = new AbortController()
  const stuck = once(reaching.signal, 'abort')
  const tools =
    (isStuck: boolean) =>
    (app: Rally): Rally =>
      app.tool('report', { task: 'always' }, async (_args, io) => {
        await io.step('collect', () => 1)
        await io.step('render', () => {
          if (!isStuck) return 2
          reaching.abort()
          return new Promise<number>(() => {})
        })
        return 'done'
      })
  const a = office.instance(tools(true), { observers: [otel({ tracerProvider: providerOf('a') })] })
  const id = await new TaskCaller(office, a.app, 'alice').begin('report')
  await stuck
  a.view.kill()
  const b = office.instance(tools(false), { observers: [otel({ tracerProvider: providerOf('b') })] })
  office.skipWaits()
  office.elapse(LEASE_MS + 1)
  expect(await new TaskCaller(office, b.app, 'alice').said(id)).toBe('done')
  const spans = exporter.getFinishedSpans().filter(({ name }) => !name.startsWith('tasks/'))
  expectOnPage('A task that a second worker takes over', treeOf(spans))
})
