// Asks the person at the terminal, one question at a time. Escape leaves a question, Ctrl-C stops the call.
import type { Writable } from 'node:stream'
import type { ReadStream } from 'node:tty'
import { type CANCEL_SYMBOL, confirm, isCancel, log, multiselect, select, text } from '@clack/prompts'
import type { Console } from './console.ts'
import { Colourless } from './console.ts'
import { Interrupted } from './exit.ts'

/** The user pressed Escape. */
export class Escaped extends Error {}

/** The server withdrew the question. */
export class Withdrawn extends Error {}

export interface Choice<T> {
  readonly value: T
  readonly label: string
  readonly hint?: string
}

interface Common {
  input: ReadStream
  output: Writable
  signal: AbortSignal
}

export class Prompts {
  readonly #input: ReadStream
  readonly #output: Writable
  #signal: AbortSignal | undefined

  constructor({ input, errors, colours }: Console) {
    this.#input = input
    this.#output = colours.errors ? errors : new Colourless(errors)
  }

  /** The next questions are withdrawn when the signal is aborted. */
  until(signal: AbortSignal | undefined): void {
    this.#signal = signal
  }

  /** Shows a line that is not a question. */
  step(message: string): void {
    log.step(message, { output: this.#output })
  }

  say(message: string): void {
    log.message(message, { output: this.#output })
  }

  warn(message: string): void {
    log.warn(message, { output: this.#output })
  }

  /** `check` says what is wrong, if something is. */
  async text(
    message: string,
    options: { placeholder?: string; initial?: string; check: (text: string) => string | undefined },
  ): Promise<string> {
    const { placeholder = '', initial, check } = options
    const typed = await this.#ask((common) =>
      text({
        ...common,
        message,
        placeholder,
        ...(initial !== undefined && { initialValue: initial }),
        validate: (value = '') => check(value),
      }),
    )
    // The library returns undefined if nothing was typed.
    return typed ?? ''
  }

  confirm(message: string, initial: boolean): Promise<boolean> {
    return this.#ask((common) => confirm({ ...common, message, initialValue: initial }))
  }

  /** One of the choices. They are identified by index, because values may be equal. */
  async choose<T>(message: string, choices: readonly Choice<T>[], initial = 0): Promise<T> {
    const options = choices.map(({ label, hint }, index) => ({
      value: index,
      label,
      ...(hint !== undefined && { hint }),
    }))
    const index = await this.#ask((common) => select({ ...common, message, options, initialValue: initial }))
    const chosen = choices[index]
    if (chosen === undefined) throw new Escaped()
    return chosen.value
  }

  async chooseSeveral<T>(message: string, choices: readonly Choice<T>[], initial: readonly number[]): Promise<T[]> {
    const options = choices.map(({ label, hint }, index) => ({
      value: index,
      label,
      ...(hint !== undefined && { hint }),
    }))
    const indexes = await this.#ask((common) =>
      multiselect({ ...common, message, options, initialValues: [...initial], required: false }),
    )
    return choices.filter((_, index) => indexes.includes(index)).map(({ value }) => value)
  }

  async #ask<T>(prompt: (common: Common) => Promise<T | typeof CANCEL_SYMBOL>): Promise<T> {
    const left = new AbortController()
    const signal = this.#signal
    const leave = (): void => left.abort()
    if (signal?.aborted) throw new Withdrawn()
    signal?.addEventListener('abort', leave)
    let isInterrupted = false
    const watch = (_char: unknown, key: { ctrl?: boolean; name?: string } | undefined): void => {
      if (key?.ctrl !== true) return
      if (key.name === 'c') isInterrupted = true
      // Ctrl-D ends the input, and a prompt without input would wait forever.
      if (key.name === 'd') left.abort()
    }
    const gone = (): void => {
      isInterrupted = true
      left.abort()
    }
    this.#input.on('keypress', watch).once('end', gone)
    try {
      const answer = await prompt({ input: this.#input, output: this.#output, signal: left.signal })
      if (isInterrupted) throw new Interrupted()
      if (signal?.aborted) throw new Withdrawn()
      if (isCancel(answer)) throw new Escaped()
      return answer
    } finally {
      signal?.removeEventListener('abort', leave)
      this.#input.off('keypress', watch).off('end', gone)
    }
  }
}
