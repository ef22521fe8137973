// Debian's HAProxy in front of a fleet: round robin without affinity. `/readyz` says which instances get requests.
import type { ChildProcess } from 'node:child_process'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export class Haproxy {
  readonly url: string
  readonly #folder: string
  readonly #process: ChildProcess

  private constructor(port: number, instances: readonly number[]) {
    this.url = `http://127.0.0.1:${port}/mcp`
    this.#folder = mkdtempSync(join(tmpdir(), 'rally-haproxy-'))
    const file = join(this.#folder, 'haproxy.cfg')
    writeFileSync(file, configuration(port, instances))
    this.#process = spawn('haproxy', ['-db', '-q', '-f', file], { stdio: ['ignore', 'ignore', 'inherit'] })
  }

  /** Resolves when it accepts connections. */
  static async start(instances: readonly number[]): Promise<Haproxy> {
    if (spawnSync('haproxy', ['-v']).status !== 0) {
      throw new Error('HAProxy is missing. Install it with `apt-get install haproxy`.')
    }
    const [port = 0] = await freePorts(1)
    const haproxy = new Haproxy(port, instances)
    while (!(await isOpen(port))) {
      if (haproxy.#process.exitCode !== null) throw new Error(`HAProxy ended with ${haproxy.#process.exitCode}.`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return haproxy
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await ended
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Requests are sent to another instance only if the connection failed, so that none is carried out twice by the proxy. */
function configuration(port: number, instances: readonly number[]): string {
  const servers = instances.map((each, slot) => `  server s${slot} 127.0.0.1:${each} check inter 100ms fall 1 rise 1`)
  return `defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout check 500ms
  retries 3
  retry-on conn-failure
  option redispatch 1
frontend fleet
  bind 127.0.0.1:${port}
  default_backend instances
backend instances
  balance roundrobin
  option httpchk GET /readyz
${servers.join('\n')}
`
}

/** Ports that nothing listens on now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => void server.close(resolve))))
  return ports
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
