// rally tasks: what operators do with the tasks in a store. It needs no server, and none of the code of the app.
import type { Command } from 'commander'
import { InvalidArgumentError, Option } from 'commander'
import { TASK_STATUSES } from '../store/tasks.ts'
import type { TaskListOptions, TaskOperations, TaskSummary } from '../tasks/operations.ts'
import { TASK_OUTCOMES } from '../tasks/outcome.ts'
import { cleanJson, cleanLine } from './clean.ts'
import type { CommandContext } from './command.ts'
import { noMore } from './command.ts'
import { bold } from './console.ts'
import type { RunContext } from './context.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, UsageError } from './exit.ts'
import { openStore, storeError } from './stores.ts'
import { table } from './table.ts'
import { detailLines } from './timeline.ts'

interface TasksCommandOptions {
  readonly store?: string
  readonly schema?: string
  readonly status?: TaskListOptions['status']
  readonly outcome?: TaskListOptions['outcome']
  readonly tool?: string
  readonly principal?: string
  readonly before?: string
  readonly limit?: number
  readonly from?: string
  readonly payloads?: boolean
  readonly json?: boolean
}

const HELP = `
Actions: list (the default), show <id>, cancel <id>, retry <id>. An id may be shortened, as in the table.

  npx mcp-rally tasks --store tasks.db --outcome error
  npx mcp-rally tasks show 8a6f1c52 --store tasks.db
  npx mcp-rally tasks retry 8a6f1c52 --from charge --store postgres://rally@db.example.com/rally

RALLY_STORE is used if --store is not given. A retry makes a new task, which a worker of the app runs.`

export function addTasks(program: Command, { runContext, run }: CommandContext): void {
  program
    .command('tasks')
    .usage('[action] [id] [options]')
    .description('list, show, cancel or retry the tasks in a store')
    .argument('[words...]')
    .option('--store <file or url>', 'a SQLite file, or PostgreSQL by its URL')
    .option('--schema <name>', 'the schema of the tables in PostgreSQL (default: rally)')
    .addOption(choice('--status <status>', 'list: only tasks with this status', TASK_STATUSES))
    .addOption(choice('--outcome <outcome>', 'list: only tasks that ended like this', TASK_OUTCOMES))
    .option('--tool <name>', 'list: only tasks of this tool')
    .option('--principal <name>', 'list: only tasks of this principal')
    .option('--before <time or position>', 'list: only tasks from before this time, or the next page')
    .option('--limit <number>', 'list: how many tasks (default: 50, at most 1000)', readLimit)
    .option('--from <key>', 'retry: do this step or question again, and all after it')
    .option('--payloads', 'show: also arguments, answers and results')
    .option('--json', 'print JSON, for scripts')
    .addHelpText('after', HELP)
    .action(async (words: string[], options: TasksCommandOptions) => run(runTasks(words, options, runContext)))
}

async function runTasks(
  words: readonly string[],
  options: TasksCommandOptions,
  context: RunContext,
): Promise<ExitCode> {
  const [name = 'list', id, ...others] = words
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (action === undefined) throw new UsageError(`"${name}" is not an action. Use list, show, cancel or retry.`)
  noMore(name === 'list' ? words.slice(1) : others)
  const address = options.store ?? context.env['RALLY_STORE'] ?? ''
  if (address === '') throw new UsageError('Which store? Pass --store <file or url>, or set RALLY_STORE.')
  if (name !== 'list' && id === undefined) throw new UsageError('Which task? npx mcp-rally tasks lists them.')
  try {
    const store = await openStore(address, options.schema)
    try {
      const { TaskOperations: Operations } = await import('../tasks/operations.ts')
      const operations = new Operations(store.tasks)
      await action(operations, id === undefined ? '' : await wholeId(operations, id), options, context)
    } finally {
      await store.close()
    }
  } catch (error) {
    throw storeError(error)
  }
  return EXIT.done
}

type Action = (tasks: TaskOperations, id: string, options: TasksCommandOptions, context: RunContext) => Promise<void>

const ACTIONS: Readonly<Record<string, Action>> = {
  async list(tasks, _id, options, { console }) {
    const { tasks: found, next } = await tasks.list(listOptions(options))
    if (options.json === true) return console.print(cleanJson({ tasks: found, ...(next !== undefined && { next }) }))
    const [headings = '', ...rows] = tableOf(found, console.columns)
    if (found.length > 0) console.print([bold(headings, console.colours.results), ...rows].join('\n'))
    else console.tell(next === undefined ? 'There are none.' : 'There are none among the newest.')
    if (next !== undefined) console.tell(`For more: --before ${next}`)
  },

  async show(tasks, id, { json, payloads = false }, { console, env }) {
    const details = await tasks.get(id, { redact: !payloads })
    if (json === true) return console.print(cleanJson(details))
    const isPlain = env['TERM'] === 'dumb'
    console.print(detailLines(details, { columns: console.columns, isPlain, now: Date.now() }).join('\n'))
  },

  async cancel(tasks, id, { json }, { console }) {
    await tasks.cancel(id)
    if (json === true) return console.print(cleanJson({ id, status: 'cancelled' }))
    console.print('Cancelled. A worker that runs it stops within a few seconds.')
  },

  async retry(tasks, id, { json, from }, { console }) {
    const retried = await tasks.retry(id, from === undefined ? {} : { from })
    if (json === true) return console.print(cleanJson(retried))
    console.print(`Retried as ${retried.id}`)
    console.tell('A worker of the app runs it. Follow it with npx mcp-rally tasks show.')
  },
}

const ID = /^[0-9a-f]{64}$/
const SHORT_ID = 12
const LEAST_ID = 4
const MOST_LOOKED = 1_000

/** An id that was shortened is looked for among the newest tasks. */
async function wholeId(operations: TaskOperations, typed: string): Promise<string> {
  if (ID.test(typed) || typed.length < LEAST_ID) return typed
  const { tasks } = await operations.list({ limit: MOST_LOOKED })
  const matching = tasks.filter(({ id }) => id.startsWith(typed))
  if (matching.length > 1) throw new UsageError(`${matching.length} tasks begin with "${typed}". Type more of the id.`)
  return matching[0]?.id ?? typed
}

function listOptions({ status, outcome, tool, principal, before, limit }: TasksCommandOptions): TaskListOptions {
  return {
    ...(status !== undefined && { status }),
    ...(outcome !== undefined && { outcome }),
    ...(tool !== undefined && { tool }),
    ...(principal !== undefined && { principal }),
    ...(before !== undefined && { before: readBefore(before) }),
    ...(limit !== undefined && { limit }),
  }
}

function tableOf(tasks: readonly TaskSummary[], columns: number): string[] {
  const isWhole = !Number.isFinite(columns)
  const rows = tasks.map(({ id, tool, status, outcome, createdAt, principal = '', message = '' }) => [
    isWhole ? id : id.slice(0, SHORT_ID),
    outcome ?? status,
    createdAt.toISOString().replace('T', ' ').slice(0, 19),
    shortened(tool, isWhole),
    [principal, message].filter((text) => text !== '').join(': '),
  ])
  const lines = table(['ID', 'STATE', 'CREATED (UTC)', 'TOOL', 'PRINCIPAL'], rows, columns)
  return lines.map((line) => (line.length <= columns ? line : line.slice(0, columns)))
}

const LONGEST_TOOL = 24

function shortened(text: string, isWhole: boolean): string {
  const line = cleanLine(text)
  return isWhole || line.length <= LONGEST_TOOL ? line : `${line.slice(0, LONGEST_TOOL - 3)}...`
}

/** A position of an earlier page, which the store reads, or a time. */
function readBefore(text: string): Date | string {
  if (text.startsWith('page:')) return text
  const time = new Date(text)
  return Number.isNaN(time.getTime()) ? text : time
}

function readLimit(text: string): number {
  const limit = Number(text)
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_LOOKED)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MOST_LOOKED}.`)
  return limit
}

function choice(flags: string, description: string, values: readonly string[]): Option {
  return new Option(flags, description).choices(values)
}
