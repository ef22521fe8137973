// The terminal client as a process of its own, without a terminal.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** Words that start a server over the standard streams. */
export const STARTED = ['--', process.execPath, fileURLToPath(new URL('./server.mjs', import.meta.url))]

export interface Ran {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs it to its end. */
export async function rally(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const { ended } = start(args, env)
  const { code, stdout, stderr } = await ended
  return { code, stdout: stdout.toString(), stderr: stderr.toString() }
}

/** Starts it, with nothing to read and nothing of our environment but the path. It is gone when the test is over. */
export function start(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const run = async () => {
    const [stdout, stderr] = await Promise.all([buffer(child.stdout), buffer(child.stderr), once(child, 'exit')])
    return { code: child.exitCode, stdout, stderr }
  }
  return { ended: run(), interrupt: () => void child.kill('SIGINT') }
}

export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'rally-cli-'))
  onTestFinished(() => rm(path, { recursive: true }))
  return path
}

/** A file with a JSON value. */
export async function jsonFile(value: unknown): Promise<string> {
  const path = join(await folder(), 'file.json')
  await writeFile(path, JSON.stringify(value))
  return path
}

/** A server that keeps the path and the headers of each request, and answers nothing. */
export async function thief(): Promise<{ url: string; requests: string[][] }> {
  const requests: string[][] = []
  const server = createServer((request, response) => {
    requests.push([request.url ?? '', ...request.rawHeaders])
    response.writeHead(418).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/mcp`, requests }
}
