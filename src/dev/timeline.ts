// The observer of `rally dev`: one line for each thing that happens, when it happens.
import type { FlowEnd, ObservedFlow, Observer, RoundEnd } from '../flow/observer.ts'
import { cut, reasonOf } from '../protocol/text.ts'

/** Requests about which the passes of their flow say more. */
const WITH_FLOW = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** Prints through `write`, which gets one line at a time. */
export function timeline(write: (line: string) => void): Observer {
  const tell = (text: string): void => write(`${new Date().toTimeString().slice(0, 8)} ${plain(text)}`)
  const about = ({ target, flow }: ObservedFlow, text: string): void => tell(`${target} [${flow.slice(0, 4)}] ${text}`)
  return {
    round({ method, target }) {
      const ms = stopwatch()
      return ({ outcome, error }: RoundEnd) => {
        if (error !== undefined) tell(`${target ?? method}: error ${error.code}, ${error.message}`)
        else if (!WITH_FLOW.has(method)) tell(`${method}: ${outcome} (${ms()})`)
      }
    },
    flow(flow) {
      const ms = stopwatch()
      about(flow, `${flow.method}, ${flow.carrier === 'client' ? 'round' : 'pass'} ${flow.round + 1}`)
      return (end) => about(flow, `${endOf(flow, end)} (${ms()})`)
    },
    step({ key, attempt, flow }) {
      const ms = stopwatch()
      return ({ outcome, error }) => {
        const again = attempt === 1 ? '' : `, attempt ${attempt}`
        about(flow, `  step ${key}${again}: ${outcome}${because(error)} (${ms()})`)
      }
    },
    ask({ key, kind, flow }) {
      return ({ outcome }) => about(flow, `  ask ${key}: ${outcome === 'open' ? `asks the user (${kind})` : outcome}`)
    },
    wait({ for: what, keys, dueAt, flow }) {
      const until = dueAt === undefined ? '' : `, until ${new Date(dueAt).toTimeString().slice(0, 8)}`
      about(flow, `  waits for ${what}: ${keys.join(', ')}${until}`)
    },
    task({ tool, task, lost }) {
      tell(`${tool} task ${task.slice(0, 8)}: ${lost ? 'taken over from a worker that was lost' : 'runs'}`)
      return ({ outcome }) => tell(`${tool} task ${task.slice(0, 8)}: ${outcome}`)
    },
  }
}

function endOf({ carrier }: ObservedFlow, { outcome, error }: FlowEnd): string {
  if (outcome !== 'asks') return `${outcome}${because(error)}`
  return carrier === 'store' ? 'suspended: the store has the question' : 'suspended: the client has the question'
}

function because(error: unknown): string {
  return error === undefined ? '' : `: ${reasonOf(error)}`
}

function stopwatch(): () => string {
  const start = performance.now()
  return () => `${(performance.now() - start).toFixed(1)} ms`
}

/** Names and messages may come from a client: they stay on their line, and cannot control the terminal. */
function plain(text: string): string {
  return cut(text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '\uFFFD'), 400)
}
