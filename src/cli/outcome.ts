// The end of a call: its result shown, and the exit code that tells how it went.
import type { Results, RoundMethod } from '../client/pending.ts'
import type { CallToolResult } from '../protocol/messages.ts'
import { cleanJson, cut } from './clean.ts'
import type { Console } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT } from './exit.ts'
import { onlyBytes, resultText } from './results.ts'

export interface Ended {
  readonly method: RoundMethod
  readonly result: Results[RoundMethod]
  /** Whether the user said no to something. */
  readonly hasDeclined: boolean
}

/** Most characters on a screen; a file or a pipe takes them all. */
const MOST_ON_SCREEN = 20_000

/** `server` is its name. */
export function tellEnd(
  { method, result, hasDeclined }: Ended,
  server: string,
  isJson: boolean,
  console: Console,
): ExitCode {
  showResult(method, result, isJson, console)
  if ((result as CallToolResult).isError !== true) return EXIT.done
  if (hasDeclined) return EXIT.unanswered
  if (!isJson) console.tell(`${server} says that this failed.`)
  return EXIT.toolFailed
}

function showResult(method: RoundMethod, result: Results[RoundMethod], isJson: boolean, console: Console): void {
  if (isJson) return console.print(cleanJson(result))
  if (console.isResultOnScreen) return console.print(cut(resultText(method, result), MOST_ON_SCREEN))
  const bytes = onlyBytes(method, result)
  if (bytes === undefined) console.print(resultText(method, result))
  else console.printBytes(bytes)
}
