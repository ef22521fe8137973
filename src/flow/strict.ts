// What strict passes know about io calls, and others do not: where a call was made, and the texts of questions. It costs time and
// memory, so in production none of this runs.

/** Enough for Rally's own frames and a few of the author's. */
const MOST_FRAMES = 12

/** Where an io call was made. */
export class CallSite {
  readonly #trace: { stack?: string } = {}

  constructor() {
    // Its text is made only if it is read.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = MOST_FRAMES
    Error.captureStackTrace(this.#trace)
    Error.stackTraceLimit = stackTraceLimit
  }

  /** The stack from the author's line on. */
  get frames(): string[] {
    return fromAuthor((this.#trace.stack ?? '').split('\n').filter((line) => line.trimStart().startsWith('at ')))
  }

  /** The author's line, such as `deploy.ts:12:9`. */
  get line(): string | undefined {
    const [frame = ''] = this.frames
    return POSITION.exec(frame)?.[1]
  }
}

const POSITION = /\(?((?:file:\/\/)?[^\s()]+:\d+:\d+)\)?$/

/** Where this file is: `src/flow/strict.ts` in the repository, a file of `dist/shared/` in the package. */
const OWN_FOLDER = /^(.*[\\/](?:src[\\/](?=flow[\\/]strict\.ts)|dist[\\/](?=shared[\\/])))/

/** A function of Rally's between the author's call and the stack. In a bundle, only names tell. */
const OWN_FUNCTION =
  /at (?:async )?(?:new )?_?(?:CallSite|newCall|lateCall|Pass|ObservedPass|Io|Promise|#\w+)\d*(?:\.\S+)? \(/

/**
 * Without the frames of Rally's own files. The first frame is always in one of them. If the author's code is in the same file, because
 * the app is one bundle, without the frames of Rally's own functions.
 */
function fromAuthor(frames: readonly string[]): string[] {
  const folder = OWN_FOLDER.exec(POSITION.exec(frames[0] ?? '')?.[1] ?? '')?.[1]
  const isOwn = (frame: string): boolean =>
    !POSITION.test(frame) || frame.includes('node:') || (frame.includes(folder ?? '') && !frame.includes('.test.ts:'))
  const from = folder === undefined ? -1 : frames.findIndex((frame) => !isOwn(frame))
  return frames.slice(Math.max(from < 0 ? frames.findIndex((frame) => !OWN_FUNCTION.test(frame)) : from, 0))
}

const MOST_TEXTS = 500

/** The texts of the questions that this process has asked last, by pin. A state carries only the pin. */
const texts = new Map<string, string>()

export function rememberText(pin: string, text: string): void {
  texts.delete(pin)
  texts.set(pin, text)
  for (const oldest of texts.keys()) {
    if (texts.size <= MOST_TEXTS) return
    texts.delete(oldest)
  }
}

/** The text of a question that this process has asked. */
export function textOf(pin: string): string | undefined {
  return texts.get(pin)
}
