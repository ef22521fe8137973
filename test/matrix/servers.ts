// The servers as processes of their own: over HTTP one of each kind serves every row, over stdio each client starts its own.
import { fileURLToPath } from 'node:url'
import { Child } from '../interop/child.ts'
import type { ServerName, Wire } from './table.ts'

export type Address = { readonly url: string } | { readonly command: string; readonly args: string[] }

export interface Servers {
  addressOf(server: ServerName): Address
  close(): Promise<void>
}

/** For processes to start on a machine that has much else to do. */
export const START_MS = 60_000

const PROGRAMS = { ours: 'ours.mjs', v2: 'official-v2.mjs', v1: 'official-v1.mjs' }

export function servers(wire: Wire): Promise<Servers> {
  return wire === 'HTTP' ? overHttp() : Promise.resolve(overStdio())
}

async function overHttp(): Promise<Servers> {
  const children = Object.entries(PROGRAMS).map(
    ([name, program]) => [name, new Child(process.execPath, [pathOf(program)])] as const,
  )
  const close = async (): Promise<void> => {
    await Promise.all(children.map(([, child]) => child.kill()))
  }
  try {
    const urls = new Map<string, string>()
    for (const [name, child] of children) {
      const [, url = ''] = await child.printed.match(/listening on (\S+)/)
      urls.set(name, url)
    }
    urls.set('v2-stateless', new URL('/stateless', urls.get('v2')).href)
    return { addressOf: (server) => ({ url: urls.get(server) ?? '' }), close }
  } catch (error) {
    await close()
    throw error
  }
}

function overStdio(): Servers {
  return {
    addressOf: (server) => {
      if (server === 'v2-stateless') throw new Error('Over stdio every connection is a session.')
      return { command: process.execPath, args: [pathOf(PROGRAMS[server]), '--stdio'] }
    },
    close: async () => {},
  }
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(program, import.meta.url))
}
