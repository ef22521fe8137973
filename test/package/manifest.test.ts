// The manifest of docs/running.md fits the server of the same page: its probes, its times, and its secrets.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { ROOT } from './consumer.ts'

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: number }
  readonly periodSeconds: number
  readonly failureThreshold: number
}

interface Container {
  readonly ports: { readonly containerPort: number }[]
  readonly env: {
    readonly name: string
    readonly valueFrom: { readonly secretKeyRef: { name: string; key: string } }
  }[]
  readonly readinessProbe: Probe
  readonly livenessProbe: Probe
}

interface Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: [Container] }
    }
  }
}

const page = readFileSync(join(ROOT, 'docs/running.md'), 'utf8')

function blockOf(language: string): string {
  return new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1] ?? ''
}

function msOf(option: string): number {
  return Number(new RegExp(`${option}: ([\\d_]+)`).exec(blockOf('ts'))?.[1]?.replaceAll('_', ''))
}

const documents = parseAllDocuments(blockOf('yaml'))
const deployment = documents[0]?.toJS() as Manifest
const { terminationGracePeriodSeconds, containers } = deployment.spec.template.spec
const [{ readinessProbe, livenessProbe, ports, env }] = containers

test('the manifest is YAML', () => {
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
})

test('the process is killed only after it had the time to drain', () => {
  expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThan(msOf('drainDelayMs') + msOf('drainMs') + 1_000)
})

test('the probe has failed before the server stops to accept connections', () => {
  const { periodSeconds, failureThreshold } = readinessProbe
  expect(msOf('drainDelayMs')).toBeGreaterThan(periodSeconds * failureThreshold * 1_000 + 1_000)
})

test('probes and ports are those of the server', () => {
  const port = msOf('port')
  expect([ports[0]?.containerPort, readinessProbe.httpGet, livenessProbe.httpGet]).toEqual([
    port,
    { path: '/readyz', port },
    { path: '/livez', port },
  ])
})

test('every secret that the server reads comes from the secret that the page creates', () => {
  const read = /const \{ (.+) \} = process\.env/.exec(blockOf('ts'))?.[1]?.match(/[A-Z_]+/g)
  expect(env.map(({ name }) => name)).toEqual(read)
  const [, name = ''] = /create secret generic (\S+)/.exec(blockOf('sh')) ?? []
  for (const { valueFrom } of env) {
    expect(valueFrom.secretKeyRef.name).toBe(name)
    expect(blockOf('sh')).toContain(`--from-literal=${valueFrom.secretKeyRef.key}=`)
  }
})

test('the image starts node itself, so that it is process 1', () => {
  expect(blockOf('dockerfile')).toMatch(/^CMD \["node", "[^"]+"\]$/m)
})
