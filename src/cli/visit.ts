// Asks the person at the terminal whether a page may be opened, and opens it only then.
import { domainToUnicode } from 'node:url'
import type { VisitQuestion } from '../client/answers/question.ts'
import type { ElicitResult } from '../protocol/messages.ts'
import { openPage } from './browser.ts'
import { cleanLine, cleanMessage } from './clean.ts'
import { wayOut } from './form.ts'
import { Escaped } from './prompts.ts'
import type { Choice, Prompts } from './prompts.ts'

export interface VisitOptions {
  /** Who asks, as it says itself, and where it is. */
  readonly server: string
  /** Whether pages are opened here, and not only shown. */
  readonly opens: boolean
  /** Pages that the user agreed to in this call. */
  readonly visited: Set<string>
}

type Decision = 'open' | 'go' | 'decline'

export async function askVisit(
  question: VisitQuestion,
  prompts: Prompts,
  options: VisitOptions,
): Promise<ElicitResult> {
  prompts.say(cleanMessage(question.message))
  prompts.say(describePage(question, options.server))
  if (question.lookalike) prompts.warn(LOOKALIKE)
  const { href } = new URL(question.url)
  const decision = await decide(choicesFor(question, href, options), prompts)
  if (decision === 'decline' || decision === 'cancel') return { action: decision }
  options.visited.add(href)
  if (decision === 'open' && !(await openPage(href))) prompts.warn('Nothing here can open a page: open it yourself.')
  return { action: 'accept' }
}

/** Who wants the user to go where: the whole address, and its host apart. */
function describePage({ url, host, lookalike }: VisitQuestion, server: string): string {
  const { href, hostname } = new URL(url)
  const looks = lookalike ? ` (shown by browsers as ${cleanLine(domainToUnicode(hostname))})` : ''
  // As it will be opened, in ASCII, and whole: what is cut off could be what matters.
  return `${server} asks you to visit\n${href}\non the host ${cleanLine(host)}${looks}`
}

const LOOKALIKE = 'The host is written with letters beyond ASCII. It may only look like one that you know.'

function choicesFor({ lookalike }: VisitQuestion, href: string, { opens, visited }: VisitOptions): Choice<Decision>[] {
  const go: Choice<Decision> = { value: 'go', label: opens ? 'I open it myself' : 'I will visit it' }
  const open: Choice<Decision>[] = opens ? [{ value: 'open', label: 'Open it in the browser' }] : []
  const decline: Choice<Decision> = { value: 'decline', label: 'Decline' }
  if (visited.has(href)) return [{ value: 'go', label: 'I have been there: go on' }, ...open, decline]
  return lookalike ? [decline, ...open, go] : [...open, go, decline]
}

async function decide(choices: readonly Choice<Decision>[], prompts: Prompts): Promise<Decision | 'cancel'> {
  for (;;) {
    try {
      return await prompts.choose('Visit it?', choices)
    } catch (error) {
      if (!(error instanceof Escaped)) throw error
      const action = await wayOut(prompts)
      if (action !== 'back') return action
    }
  }
}
