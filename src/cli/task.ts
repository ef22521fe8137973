// Follows a task to its end, shows its status once, or cancels it.
import type { Command } from 'commander'
import { Option } from 'commander'
import type { ClientTask } from '../client/tasks/task.ts'
import type { TaskState } from '../client/tasks/state.ts'
import { exampleOf } from './answers.ts'
import { cleanJson } from './clean.ts'
import type { CommandContext } from './command.ts'
import { noMore, withAnswerOptions } from './command.ts'
import type { Console } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted, UsageError } from './exit.ts'
import { finishCall } from './results.ts'
import type { AnswerOptions } from './responder.ts'
import { asksPerson, capabilitiesOf, openDialogue, prepareAnswers, whyUnanswered } from './responder.ts'
import { describe } from './rounds.ts'
import { LiveAnswers } from './live-answers.ts'
import type { Server } from './server.ts'
import { isAddress } from './server.ts'
import type { RunContext } from './session.ts'
import { nameOf, withClient } from './session.ts'
import { followTask, statusText } from './task-view.ts'

const TASK_HELP = `
Shows the task until it ends, and asks you its questions. Ctrl-C leaves the task running on the server, and so does a
question without an answer. You can return to it later.`

export function addTask(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withAnswerOptions(program.command('task').usage('<server> <id> [options]'))
    .description('follow a call that became a task')
    .argument('[words...]')
    .option('--no-wait', 'show its status once, and do not wait')
    .option('--cancel', 'ask the server to cancel it')
    .addOption(new Option('--id <id>').hideHelp())
    .addHelpText('after', TASK_HELP)
    .action(async (words: string[], options: TaskCommandOptions & { id?: string }) => {
      const { server, rest } = await serverOf(words, options)
      const [id, ...others] = options.id === undefined ? rest : [options.id, ...rest]
      if (id === undefined)
        throw new UsageError('Which task? npx mcp-rally call <server> <tool> --detach prints its id.')
      noMore(others)
      return run(runTask(server, id, options, runContext))
    })
}

/** A server may choose an id that begins like an option. The word right after the server is the id all the same. */
export function withoutDashes(words: readonly string[], program: Command): string[] {
  const [name, first = ''] = words
  const at = isAddress(first) ? 2 : 1
  const word = words[at] ?? ''
  if (name !== 'task' || !word.startsWith('-')) return [...words]
  const flag = word.replace(/^(--[^=]*)=.*$/, '$1')
  const { options = [] } = program.commands.find((each) => each.name() === name) ?? {}
  const flags = ['-h', '--help', ...options.flatMap(({ short, long }) => [short, long])]
  return flags.includes(flag) ? [...words] : words.with(at, `--id=${word}`)
}

interface TaskCommandOptions extends AnswerOptions {
  readonly cancel?: boolean
  readonly wait: boolean
}

async function runTask(
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
