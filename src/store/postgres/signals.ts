// What one instance tells the others with NOTIFY, and how it is written. A payload holds several signals, because each payload is a
// message of its own to every instance.
import type { TaskEvent } from '../tasks.ts'
import { fromText, toText } from './text.ts'

/** `channel` is the digest of a mailbox channel in which an event has arrived. */
export type StoreSignal = TaskEvent | { readonly type: 'mail'; readonly channel: string }

/** In a written text, the escape character is followed by four hex digits. So this is in none. */
const SEPARATOR = '\ue000,'
/** PostgreSQL takes less than 8,000 bytes. One signal has about 1,050 at most. */
const MAX_PAYLOAD_BYTES = 7_900

/** Signals that are not sent yet: each once, and of the changes of a task the last one. */
export class SignalQueue {
  readonly #signals = new Map<string, StoreSignal>()

  get size(): number {
    return this.#signals.size
  }

  add(signal: StoreSignal): void {
    const key = signal.type === 'changed' ? `c${signal.id}` : write(signal)
    const known = this.#signals.get(key)
    if (known?.type === 'changed' && signal.type === 'changed' && known.version > signal.version) return
    this.#signals.set(key, signal)
  }

  /** Removes and returns all. */
  take(): StoreSignal[] {
    const taken = [...this.#signals.values()]
    this.#signals.clear()
    return taken
  }
}

export function packSignals(signals: readonly StoreSignal[]): string[] {
  const payloads: string[] = []
  let size = Infinity
  for (const signal of signals) {
    const text = write(signal)
    const bytes = Buffer.byteLength(text) + SEPARATOR.length + 2
    if (size + bytes > MAX_PAYLOAD_BYTES) {
      payloads.push(text)
      size = bytes
    } else {
      payloads[payloads.length - 1] += SEPARATOR + text
      size += bytes
    }
  }
  return payloads
}

/** Leaves out what it does not know: a later version may have sent it. */
export function unpackSignals(payload = ''): StoreSignal[] {
  return payload.split(SEPARATOR).flatMap((text): StoreSignal[] => {
    const rest = text.slice(1)
    switch (text[0]) {
      case 'd':
        return [{ type: 'due' }]
      case 'm':
        return [{ type: 'mail', channel: rest }]
      case 'c': {
        const end = rest.indexOf(' ')
        return [{ type: 'changed', id: fromText(rest.slice(end + 1)), version: Number(rest.slice(0, end)) }]
      }
      default:
        return []
    }
  })
}

function write(signal: StoreSignal): string {
  if (signal.type === 'due') return 'd'
  return signal.type === 'mail' ? `m${signal.channel}` : `c${signal.version} ${toText('id', signal.id)}`
}
