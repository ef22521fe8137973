// Follows a task to its end, shows its status once, or cancels it.
import type { ClientTask } from '../client/tasks/task.ts'
import type { TaskState } from '../client/tasks/state.ts'
import { exampleOf } from './answers.ts'
import { cleanJson } from './clean.ts'
import type { Console } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted } from './exit.ts'
import { finishCall } from './results.ts'
import type { AnswerOptions } from './responder.ts'
import { asksPerson, capabilitiesOf, openDialogue, prepareAnswers, whyUnanswered } from './responder.ts'
import { describe } from './rounds.ts'
import { LiveAnswers } from './live-answers.ts'
import type { Server } from './server.ts'
import type { RunContext } from './session.ts'
import { nameOf, withClient } from './session.ts'
import { followTask, statusText } from './task-view.ts'

export interface TaskCommandOptions extends AnswerOptions {
  readonly cancel?: boolean
  readonly wait: boolean
}

export async function runTask(
  server: Server,
  id: string,
  options: TaskCommandOptions,
  context: RunContext,
): Promise<ExitCode> {
  const prepared = await prepareAnswers(options)
  const { console, signal } = context
  const live = new LiveAnswers(capabilitiesOf(prepared, asksPerson(console, options)), prepared.roots)
  return withClient(server, options, live.answerers, context, async (client) => {
    const task = client.task(id)
    if (options.cancel === true || !options.wait) return showStatus(task, options, context)
    const dialogue = await openDialogue(client, server, options, prepared, console, 'leaves the task running')
    const unanswered = whyUnanswered(prepared, options)
    live.open({ ...dialogue, unanswered, server: nameOf(client) })
    const { result, hasDeclined } = await followTask(task, { ...dialogue, unanswered, signal, server, console })
    return finishCall({ method: 'tools/call', result, hasDeclined }, nameOf(client), options.json === true, console)
  })
}

async function showStatus(
  task: ClientTask,
  options: TaskCommandOptions,
  { console, signal }: RunContext,
): Promise<ExitCode> {
  try {
    if (options.cancel === true) await task.cancel({ signal })
    printState(await task.status({ signal }), options.json === true, console)
    return EXIT.done
  } catch (error) {
    throw signal.aborted ? new Interrupted() : error
  }
}

function printState(state: TaskState, isJson: boolean, console: Console): void {
  if (isJson) return console.print(cleanJson(state))
  console.print(statusText(state))
  if (state.status !== 'input_required') return
  for (const question of state.questions) console.tell(`${describe(question)}.`)
  console.tell(`Answers in a file for --answers look like this: {${state.questions.map(exampleOf).join(', ')}}`)
}
