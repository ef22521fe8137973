// examples/11-fleet.ts as its header says: three instances behind HAProxy with the example's own configuration.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'mcp-rally/client'
import { expect, onTestFinished, test } from 'vitest'
import { ROOT } from '../package/consumer.ts'
import { answering, freePort, killed } from '../runtimes/processes.ts'

const PORTS = ['3000', '3001', '3002', '3003']

test(
  'a call begins on one instance and ends on another, also when the first one is gone',
  { timeout: 60_000 },
  async () => {
    const ports = new Map<string, string>()
    for (const port of PORTS) ports.set(port, String(await freePort()))
    const instances = new Map<string, ChildProcess>()
    for (const port of PORTS.slice(1)) {
      const env = {
        PATH: process.env['PATH'],
        RALLY_KEYS: 'a key of the fleet example that is long enough',
        PORT: ports.get(port),
      }
      const child = spawn(process.execPath, [join(ROOT, 'dist-examples/11-fleet.js')], {
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => killed(child))
      instances.set(ports.get(port) ?? '', child)
      await once(child.stdout, 'data')
    }
    const folder = mkdtempSync(join(tmpdir(), 'rally-fleet-example-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const given = readFileSync(join(ROOT, 'examples/11-fleet.haproxy.cfg'), 'utf8')
    writeFileSync(
      join(folder, 'haproxy.cfg'),
      given.replaceAll(/127\.0\.0\.1:(\d+)/g, (_all, port: string) => `127.0.0.1:${ports.get(port)}`),
    )
    const haproxy = spawn('haproxy', ['-db', '-q', '-f', join(folder, 'haproxy.cfg')], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    onTestFinished(() => killed(haproxy))
    const url = `http://127.0.0.1:${ports.get('3000')}/mcp`
    await answering(url)

    let began = ''
    const client = await connect(url, {
      onElicit: async () => {
        const instance = instances.get(began)
        if (instance === undefined) return { action: 'accept', content: { confirm: true } }
        instance.kill('SIGTERM')
        await once(instance, 'exit')
        instances.delete(began)
        return { action: 'accept', content: { confirm: true } }
      },
    })
    const [first, last] = await call(client)
    // HAProxy goes from one to the next: the two rounds of a call never meet.
    expect(first).not.toBe(last)
    began = first ?? ''
    for (let count = 0; count < 6; count += 1) {
      const [, ended] = await call(client)
      if (!instances.has(began)) expect(ended).not.toBe(began)
    }
    expect(instances.size).toBe(2)
    await client.close()
  },
)

async function call(client: Awaited<ReturnType<typeof connect>>): Promise<string[]> {
  const { content } = await client.callTool('which')
  const text = content[0]?.type === 'text' ? content[0].text : ''
  return /^Began on (\d+), ended on (\d+)$/.exec(text)?.slice(1) ?? [text]
}
