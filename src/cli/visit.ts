// Asks the person at the terminal for consent to visit a page, and opens it only after that.
import { spawn } from 'node:child_process'
import { domainToUnicode } from 'node:url'
import type { VisitQuestion } from '../client/answers/question.ts'
import type { ElicitResult } from '../protocol/messages.ts'
import { cleanLine, cleanMessage } from './clean.ts'
import { askHowToLeave } from './form.ts'
import { Escaped } from './prompts.ts'
import type { Choice, Prompts } from './prompts.ts'

export interface VisitPromptOptions {
  /** The server's own name, and its address. */
  readonly server: string
  /** True if pages may be opened in the browser, not only shown. */
  readonly opens: boolean
  /** The pages that the user agreed to visit in this call. */
  readonly visited: Set<string>
}

type Decision = 'open' | 'go' | 'decline'

export async function askVisit(
  question: VisitQuestion,
  prompts: Prompts,
  options: VisitPromptOptions,
): Promise<ElicitResult> {
  prompts.say(cleanMessage(question.message))
  prompts.say(describePage(question, options.server))
  if (question.lookalike) prompts.warn(LOOKALIKE)
  const { href } = new URL(question.url)
  const decision = await decide(choicesFor(question, href, options), prompts)
  if (decision === 'decline' || decision === 'cancel') return { action: decision }
  options.visited.add(href)
  if (decision === 'open' && !(await openPage(href)))
    prompts.warn('No program was found that opens the page. Open it yourself.')
  return { action: 'accept' }
}

/** Says who asks to visit which page: the full address, and its host separately. */
function describePage({ url, host, lookalike }: VisitQuestion, server: string): string {
  const { href, hostname } = new URL(url)
  const looks = lookalike ? ` (shown by browsers as ${cleanLine(domainToUnicode(hostname))})` : ''
  // As it will be opened: in ASCII and never cut, because the end may be what matters.
  return `${server} asks you to visit\n${href}\non the host ${cleanLine(host)}${looks}`
}

const LOOKALIKE = 'The host contains letters beyond ASCII. It may only look like a host that you know.'

function choicesFor(
  { lookalike }: VisitQuestion,
  href: string,
  { opens, visited }: VisitPromptOptions,
): Choice<Decision>[] {
  const go: Choice<Decision> = { value: 'go', label: opens ? 'I will open it myself' : 'I will visit it' }
  const open: Choice<Decision>[] = opens ? [{ value: 'open', label: 'Open it in the browser' }] : []
  const decline: Choice<Decision> = { value: 'decline', label: 'Decline' }
  if (visited.has(href)) return [{ value: 'go', label: 'I have visited it: continue' }, ...open, decline]
  return lookalike ? [decline, ...open, go] : [...open, go, decline]
}

async function decide(choices: readonly Choice<Decision>[], prompts: Prompts): Promise<Decision | 'cancel'> {
  for (;;) {
    try {
      return await prompts.choose('Visit it?', choices)
    } catch (error) {
      if (!(error instanceof Escaped)) throw error
      const action = await askHowToLeave(prompts)
      if (action !== 'back') return action
    }
  }
}

/** Opens a page that the user agreed to. Returns false if the platform has no program for it. */
export function openPage(url: string): Promise<boolean> {
  // Serialized by the URL parser, so it is not an option and has no spaces. No shell is used.
  const { href } = new URL(url)
  const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open']
  return new Promise((settle) => {
    const opener = spawn(command, [...args, href], { stdio: 'ignore', detached: true })
    opener.once('spawn', () => {
      opener.unref()
      settle(true)
    })
    opener.once('error', () => settle(false))
  })
}

const OPENERS: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}
