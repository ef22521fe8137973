// Comes back to a task: shows it and asks what it asks, to its end; or looks once; or has it cancelled.
import type { ClientTask } from '../client/tasks/task.ts'
import type { TaskState } from '../client/tasks/state.ts'
import { exampleOf } from './answers.ts'
import { cleanJson } from './clean.ts'
import type { Console } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted } from './exit.ts'
import { tellEnd } from './outcome.ts'
import type { AnswerOptions } from './responder.ts'
import { capabilitiesOf, openDialogue, readKnown, whyUnanswered } from './responder.ts'
import { describe } from './rounds.ts'
import type { Server } from './server.ts'
import type { Surroundings } from './session.ts'
import { nameOf, withClient } from './session.ts'
import { goTask, statusText } from './task-view.ts'

export interface TaskCommandOptions extends AnswerOptions {
  readonly cancel?: boolean
  readonly wait: boolean
}

export async function runTask(
  server: Server,
  id: string,
  options: TaskCommandOptions,
  around: Surroundings,
): Promise<ExitCode> {
  const known = await readKnown(options)
  return withClient(server, options, capabilitiesOf(known), around, async (client) => {
    const { console, signal } = around
    const task = client.task(id)
    if (options.cancel === true || !options.wait) return look(task, options, around)
    const dialogue = await openDialogue(client, server, options, known, console, 'leaves the task to the server')
    const unanswered = whyUnanswered(known, options)
    const { result, hasDeclined } = await goTask(task, { ...dialogue, unanswered, signal, server, console })
    return tellEnd({ method: 'tools/call', result, hasDeclined }, nameOf(client), options.json === true, console)
  })
}

async function look(
  task: ClientTask,
  options: TaskCommandOptions,
  { console, signal }: Surroundings,
): Promise<ExitCode> {
  try {
    if (options.cancel === true) await task.cancel({ signal })
    tellState(await task.status({ signal }), options.json === true, console)
    return EXIT.done
  } catch (error) {
    throw signal.aborted ? new Interrupted() : error
  }
}

function tellState(state: TaskState, isJson: boolean, console: Console): void {
  if (isJson) return console.print(cleanJson(state))
  console.print(statusText(state))
  if (state.status !== 'input_required') return
  for (const question of state.questions) console.tell(`${describe(question)}.`)
  console.tell(`Answers in a file for --answers look like this: {${state.questions.map(exampleOf).join(', ')}}`)
}
