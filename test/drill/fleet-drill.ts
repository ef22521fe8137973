// The fleet drill: flows run through HAProxy while every instance is restarted for each phase of a key rotation, killed, and upgraded.
import { Client as OfficialClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { connect } from 'mcp-rally/client'
import { Process } from '../drain/process.ts'
import { freePorts, Haproxy } from './haproxy.ts'

export interface FleetDrillOptions {
  /** Flows of our client. */
  readonly own: number
  /** Flows of the official client. */
  readonly official: number
  /** How many run at a time. */
  readonly atOnce: number
}

export interface FleetDrillReport {
  readonly done: { own: number; official: number }
  readonly errors: { own: string[]; official: string[] }
  /** Results that are not what the flow should return. */
  readonly wrong: string[]
  /** Steps of a flow whose effect happened under two keys. */
  readonly doubled: string[]
  /** Steps whose effect never happened, of flows that ended with a result. */
  readonly missing: string[]
  /** Runs of steps beyond the first: those were lost before they were recorded, and have the same key. */
  readonly repeated: number
  /** Flows with steps of two versions. */
  readonly mixed: number[]
  readonly versions: Record<string, number>
  readonly restarts: number
  readonly kills: number
  readonly seconds: number
}

interface Effect {
  readonly effect: string
  readonly flow: number
  readonly step: number
  readonly version: string
}

type Said = Partial<Effect> & { port?: number }

const OLD = 'the old secret of the HAProxy drill, long enough'
const NEW = 'the new secret of the HAProxy drill, long enough'
const ROTATION = [[OLD, NEW], [NEW, OLD], [NEW]]
const SLOTS = [0, 1, 2] as const
/** Restarts and kills while flows run, and one more share of flows after them. */
const DISTURBANCES = ROTATION.length * (SLOTS.length + 1) + 4 + 1
const STEPS = [1, 2, 3, 4] as const
const PLUS = 10

export async function drillFleet(options: FleetDrillOptions): Promise<FleetDrillReport> {
  const drill = new FleetDrill(options)
  try {
    return await drill.run()
  } finally {
    await drill.stop()
  }
}

class FleetDrill {
  readonly #options: FleetDrillOptions
  readonly #effects: Effect[] = []
  readonly #instances: Process<Said>[] = []
  readonly #done = { own: 0, official: 0 }
  readonly #ended = new Set<number>()
  readonly #errors: FleetDrillReport['errors'] = { own: [], official: [] }
  readonly #wrong: string[] = []
  #ports: number[] = []
  #proxy: Haproxy | undefined
  #keys: readonly string[] = [OLD]
  #started = 0
  /** How many flows may have started by now. */
  #allowed = 0
  #restarts = 0
  #kills = 0

  constructor(options: FleetDrillOptions) {
    this.#options = options
  }

  async run(): Promise<FleetDrillReport> {
    const startedAt = performance.now()
    this.#ports = await freePorts(SLOTS.length)
    await Promise.all(SLOTS.map((slot) => this.#start(slot, '1')))
    this.#proxy = await Haproxy.start(this.#ports)
    const flows = this.#runFlows()
    await this.#disturb()
    await flows
    // Its last flow has ended.
    await this.#restart(2, 'SIGTERM', '2')
    return this.#report(Math.round((performance.now() - startedAt) / 1_000))
  }

  async stop(): Promise<void> {
    await this.#proxy?.stop()
    await Promise.all(this.#instances.map((instance) => instance.kill()))
  }

  get #total(): number {
    return this.#options.own + this.#options.official
  }

  /** What the operator does while flows run. */
  async #disturb(): Promise<void> {
    for (const [index, keys] of ROTATION.entries()) {
      // The old key may go when no state under it is in use. In life that is after the ttl.
      if (keys.length === 1) await this.#untilEnded(this.#started)
      this.#keys = keys
      for (const slot of SLOTS) await this.#restart(slot, 'SIGTERM', '1')
      await this.#restart(SLOTS[index] ?? 0, 'SIGKILL', '1')
    }
    await this.#restart(0, 'SIGTERM', '2')
    await this.#restart(1, 'SIGTERM', '2')
    await this.#restart(0, 'SIGKILL', '2')
    // The only instance of the old version.
    await this.#restart(2, 'SIGKILL', '1')
    this.#allowed = this.#total
  }

  /** Lets more flows start, and resolves when the last of them run. */
  async #nextFlows(): Promise<void> {
    this.#allowed = Math.min(this.#total, this.#allowed + Math.ceil(this.#total / DISTURBANCES))
    while (this.#started < this.#allowed) await pause(10)
  }

  /** Resolves when the flows that have started first have ended. */
  async #untilEnded(flows: number): Promise<void> {
    const first = Array.from({ length: flows }, (_, flow) => flow)
    while (!first.every((flow) => this.#ended.has(flow))) await pause(20)
  }

  async #start(slot: number, version: string): Promise<void> {
    const options = { keys: this.#keys, version, port: this.#ports[slot], stepMs: 5 }
    const instance = new Process<Said>(new URL('fleet-server.mjs', import.meta.url), options, (said) => {
      if (said.effect !== undefined) this.#effects.push(said as Effect)
    })
    this.#instances[slot] = instance
    await instance.until(({ port }) => port !== undefined)
  }

  async #restart(slot: number, signal: 'SIGTERM' | 'SIGKILL', version: string): Promise<void> {
    await this.#nextFlows()
    const instance = this.#instances[slot]
    instance?.signal(signal)
    await instance?.ended
    if (signal === 'SIGTERM') this.#restarts += 1
    else this.#kills += 1
    await this.#start(slot, version)
    // HAProxy looks every 100 ms. Without the wait, the next restart would leave it with one instance.
    await pause(400)
  }

  async #runFlows(): Promise<void> {
    const url = this.#proxy?.url ?? ''
    const own = await connect(url, { onElicit: ({ message }) => this.#answer(message), timeoutMs: 120_000 })
    const official = new OfficialClient(
      { name: 'official', version: '1.0.0' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
    )
    official.setRequestHandler('elicitation/create', ({ params }) => this.#answer(params.message))
    await official.connect(new StreamableHTTPClientTransport(new URL(url)))
    const every = Math.ceil(this.#total / Math.max(1, this.#options.official))
    const call = async (flow: number): Promise<void> => {
      const isOfficial = flow % every === 0
      const kind = isOfficial ? 'official' : 'own'
      try {
        const result = isOfficial
          ? await official.callTool({ name: 'trip', arguments: { flow } })
          : await own.callTool('trip', { flow })
        this.#done[kind] += 1
        const text = JSON.stringify((result as { content: unknown }).content)
        if (!text.includes(`Flow ${flow} ends at ${10 + 3 * PLUS}.`)) this.#wrong.push(text)
      } catch (error) {
        this.#errors[kind].push(`flow ${flow}: ${String(error)}`)
      } finally {
        this.#ended.add(flow)
      }
    }
    const worker = async (): Promise<void> => {
      while (this.#started < this.#total) {
        if (this.#started === this.#allowed) {
          await pause(10)
          continue
        }
        this.#started += 1
        await call(this.#started - 1)
      }
    }
    await Promise.all(Array.from({ length: this.#options.atOnce }, worker))
    await Promise.all([own.close(), official.close()])
  }

  /** A person who thinks for a moment. */
  async #answer(message: string): Promise<{ action: 'accept'; content: { plus: number } }> {
    await pause(50 + (message.length % 7) * 30)
    return { action: 'accept', content: { plus: PLUS } }
  }

  #report(seconds: number): FleetDrillReport {
    const keys = new Map<string, Set<string>>()
    const versionsOf = new Map<number, Set<string>>()
    const versions: Record<string, number> = {}
    for (const { effect, flow, step, version } of this.#effects) {
      const name = `flow ${flow} step ${step}`
      keys.set(name, (keys.get(name) ?? new Set()).add(effect))
      versionsOf.set(flow, (versionsOf.get(flow) ?? new Set()).add(version))
      versions[version] = (versions[version] ?? 0) + 1
    }
    const failed = new Set(Object.values(this.#errors).flatMap((each) => each.map((text) => text.split(':')[0])))
    const expected = Array.from({ length: this.#total }, (_, flow) => `flow ${flow}`).filter(
      (name) => !failed.has(name),
    )
    return {
      done: this.#done,
      errors: this.#errors,
      wrong: this.#wrong,
      doubled: [...keys].filter(([, each]) => each.size > 1).map(([name]) => name),
      missing: expected
        .flatMap((name) => STEPS.map((step) => `${name} step ${step}`))
        .filter((name) => !keys.has(name)),
      repeated: this.#effects.length - [...keys.values()].reduce((sum, each) => sum + each.size, 0),
      mixed: [...versionsOf].filter(([, each]) => each.size > 1).map(([flow]) => flow),
      versions,
      restarts: this.#restarts,
      kills: this.#kills,
      seconds,
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
