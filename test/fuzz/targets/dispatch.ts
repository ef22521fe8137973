// Messages of 2026-07-28, parsed, into an app: flows of several rounds, lists, subscriptions, tasks.
import type { StateCodec } from 'mcp-rally'
import { Cancel } from '../../../src/protocol/cancel.ts'
import { fuzzApp } from '../wire/app.ts'
import { isObject, mutateText, parsed } from '../harness/json.ts'
import { callerNamed } from '../../wire/messages.ts'
import { fateOf, Slots } from '../wire/messages.ts'
import { modernProgram, somePrincipal } from '../wire/programs.ts'
import type { Random } from '../harness/random.ts'
import type { Watch } from '../harness/target.ts'
import { clipped, target } from '../harness/target.ts'
import { Asked, checkSent } from '../wire/check.ts'

type Input = { messages: string[]; principal: string | null; cancels: number }

export const dispatch = target<Input>({
  name: 'dispatch',
  generate: (random) => ({ messages: modernProgram(random), principal: somePrincipal(random), cancels: -1 }),
  mutate(random, input, other) {
    if (random.chance(0.05)) return { ...input, cancels: random.int(4) }
    if (random.chance(0.15)) return { ...input, messages: mutateList(random, input.messages, other.messages) }
    const at = random.int(input.messages.length)
    const changed = mutateText(random, input.messages[at] ?? '{}', random.pick(other.messages))
    return { ...input, messages: input.messages.with(at, changed) }
  },
  async open(watch) {
    const app = fuzzApp(watch, { codec: new GlassCodec(watch) })
    return {
      async run({ messages, principal, cancels }) {
        const slots = new Slots()
        const asked = new Asked()
        const fates: string[] = []
        const open: { cancel: Cancel; reply: Promise<unknown> }[] = []
        for (const [index, each] of messages.entries()) {
          const text = slots.fill(each)
          const message = parsed(text)
          if (message === undefined) continue
          asked.note(text)
          const cancel = new Cancel()
          const notify = (told: string): void => void checkSent(watch, told, asked)
          const reply = app.dispatch(message, { caller: callerNamed(principal), notify, cancel }).then((came) => {
            const said = came && checkSent(watch, came.text, asked)
            const isOwed =
              index !== cancels && isObject(message) && isId(message['id']) && !text.includes('subscriptions/listen')
            if (isOwed && said === undefined) watch.report('invalid', 'A request got no response', clipped(text))
            slots.note(said)
            fates.push(fateOf(said))
          })
          if (index === cancels) cancel.cancel()
          if (text.includes('subscriptions/listen')) open.push({ cancel, reply })
          else await reply
        }
        for (const { cancel, reply } of open) {
          cancel.cancel()
          await reply
        }
        return fates
      },
      async close() {
        app.interrupt()
        await app.idle()
      },
    }
  },
})

/** Hides nothing from this process: what is sealed can be read here, and the flow's id must not be anywhere else. */
class GlassCodec implements StateCodec {
  readonly #watch: Watch

  constructor(watch: Watch) {
    this.#watch = watch
  }

  seal(plaintext: string): string {
    const header = parsed(plaintext.slice(0, plaintext.indexOf('\n')))
    const flowId: unknown = Array.isArray(header) ? header[9] : undefined
    if (typeof flowId === 'string' && flowId.length > 10) this.#watch.keepSecret(flowId)
    return Buffer.from(plaintext).toString('base64url')
  }

  open(token: string): string {
    return Buffer.from(token, 'base64url').toString()
  }
}

function isId(id: unknown): boolean {
  return typeof id === 'string' || Number.isSafeInteger(id)
}

export function mutateList<T>(random: Random, list: readonly T[], other: readonly T[]): T[] {
  const at = random.int(list.length)
  const changed = random.pick([
    list.toSpliced(at, 1),
    [...list, ...list.slice(at)],
    list.toReversed(),
    [...list.slice(0, at), ...other.slice(random.int(other.length))],
  ])
  return changed.length === 0 ? [...list] : changed.slice(0, 12)
}
