// A tool that becomes a task: it asks for consent in the call, works in the background, and asks again in the middle.
import { setTimeout } from 'node:timers/promises'
import type { Io, Rally } from 'mcp-rally'
import { z } from 'zod'

const REGIONS = ['eu-west', 'us-east', 'ap-south']
const PIECES = ['Reserving a machine', 'Copying the image', 'Wiring the network', 'Booting'] as const
const PARTS = 4

/** Each piece of the work takes `workMs`. */
export function provisioning(app: Rally, workMs: number): void {
  /** Simulates work that takes time and reports its progress. */
  const work = (io: Io, what: (typeof PIECES)[number]): Promise<void> =>
    io.step(what.replaceAll(' ', '-'), async ({ progress, signal }) => {
      const before = PIECES.indexOf(what) * PARTS
      for (let part = 0; part < PARTS; part += 1) {
        progress(before + part, PIECES.length * PARTS, `${what}: ${(part * 100) / PARTS} %`)
        await setTimeout(workMs / PARTS, undefined, { signal })
      }
    })

  app.tool(
    'provision_vm',
    {
      description: 'Provision a virtual machine, in the background once the user has confirmed what it costs',
      input: z.object({
        name: z.string().regex(/^[a-z][a-z0-9-]{0,30}$/, 'takes lower-case letters, digits and dashes'),
      }),
    },
    async ({ name }, io) => {
      const isFine = await io.confirm('cost', `${name} will cost 0.12 EUR an hour. Provision it?`)
      if (!isFine) return 'Nothing was provisioned.'
      // From here on the store carries the call as a task. Without a store or a client with tasks, the call just continues.
      await io.detach()
      await work(io, 'Reserving a machine')
      await work(io, 'Copying the image')
      const region = await io.choose('region', `Where should ${name} run?`, REGIONS)
      await work(io, 'Wiring the network')
      const address = `198.51.100.${1 + Math.floor(io.random('address') * 254)}`
      await work(io, 'Booting')
      io.progress(PIECES.length * PARTS, PIECES.length * PARTS, 'Ready')
      return `${name} runs in ${region} at ${address}`
    },
  )
}
