// The URIs of a template as a small program, and a run of it against one URI.
//
// A run matches greedily and backtracks when that fails, but it never visits the same fork at the same position of the URI
// twice. So its time is linear in the length of the URI, even for a hostile one.

export interface Capture {
  readonly variable: number
  readonly from: number
  to: number
}

/** Each instruction names the next one. When nothing matches, the run backtracks to the last fork. */
type Instruction =
  | { readonly op: 'text'; readonly text: string; readonly next: number }
  /** One character with a 1 at its code, or three that encode one. */
  | { readonly op: 'char'; readonly allowed: Uint8Array; readonly next: number }
  | { readonly op: 'fork'; readonly fork: number; readonly first: number; readonly second: number }
  | { readonly op: 'open'; readonly variable: number; readonly next: number }
  | { readonly op: 'close'; readonly next: number }
  | { readonly op: 'end' }

/** Built from the end: every method takes the instruction that follows, and returns the one to start with. */
export class UriPattern {
  readonly end: number = 0
  readonly #program: Instruction[] = [{ op: 'end' }]
  #forks = 0

  text(text: string, next: number): number {
    return text === '' ? next : this.#add({ op: 'text', text, next })
  }

  /** A run of allowed characters, captured for a variable. */
  value(variable: number, allowed: string, mayBeEmpty: boolean, next: number): number {
    const close = this.#add({ op: 'close', next })
    const codes = codesOf(allowed)
    const run = this.list('', (more) => this.#add({ op: 'char', allowed: codes, next: more }), close)
    return this.#add({ op: 'open', variable, next: mayBeEmpty ? this.either(run, close) : run })
  }

  either(first: number, second: number): number {
    return this.#add({ op: 'fork', fork: this.#forks++, first, second })
  }

  /** One or more times what `item` matches, which is never empty, with a separator between. */
  list(separator: string, item: (more: number) => number, next: number): number {
    const fork = this.#forks++
    const more = this.#add({ op: 'fork', fork, first: next, second: next })
    const one = item(more)
    this.#program[more] = { op: 'fork', fork, first: this.text(separator, one), second: next }
    return one
  }

  /** The captured values when the whole URI matches. The URI must be well-formed. */
  run(start: number, uri: string): Capture[] | undefined {
    const seen = new Uint8Array(this.#forks * (uri.length + 1))
    const captures: Capture[] = []
    const forks: { at: number; position: number; captured: number }[] = []
    let at: number | undefined = start
    let position = 0
    for (;;) {
      const instruction: Instruction = this.#program[at] ?? END
      at = undefined
      switch (instruction.op) {
        case 'text':
          if (!uri.startsWith(instruction.text, position)) break
          position += instruction.text.length
          at = instruction.next
          break
        case 'char': {
          const code = uri.charCodeAt(position)
          if (code !== PERCENT && instruction.allowed[code] !== 1) break
          position += code === PERCENT ? 3 : 1
          at = instruction.next
          break
        }
        case 'fork': {
          const place = instruction.fork * (uri.length + 1) + position
          if (seen[place] === 1) break
          seen[place] = 1
          forks.push({ at: instruction.second, position, captured: captures.length })
          at = instruction.first
          break
        }
        case 'open':
          captures.push({ variable: instruction.variable, from: position, to: position })
          at = instruction.next
          break
        case 'close': {
          const last = captures.at(-1)
          if (last !== undefined) last.to = position
          at = instruction.next
          break
        }
        case 'end':
          if (position === uri.length) return captures
      }
      if (at !== undefined) continue
      const back = forks.pop()
      if (back === undefined) return undefined
      ;({ at, position } = back)
      captures.length = back.captured
    }
  }

  #add(instruction: Instruction): number {
    return this.#program.push(instruction) - 1
  }
}

const END: Instruction = { op: 'end' }
const PERCENT = 0x25

function codesOf(characters: string): Uint8Array {
  const codes = new Uint8Array(128)
  for (let i = 0; i < characters.length; i += 1) codes[characters.charCodeAt(i)] = 1
  return codes
}
