// Draws a task for a terminal: what it is, and its timeline with a bar for each entry.
import type { TaskDetails } from '../tasks/operations.ts'
import type { TaskTimelineEntry } from '../tasks/timeline.ts'
import { clean, cleanJson, cleanLine } from './clean.ts'

export interface DrawingOptions {
  /** Infinity without a screen. */
  readonly columns: number
  /** The terminal can show nothing but ASCII. */
  readonly isPlain: boolean
  readonly now: number
}

const WIDTH_WITHOUT_SCREEN = 100
const MOST_COLUMNS = 160
const NARROWEST_BAR = 10
const WIDEST_NAME = 28
/** Room for how an entry ended, and how long it took. */
const ENDING = 22

export function detailLines(details: TaskDetails, options: DrawingOptions): string[] {
  const columns = Math.min(Number.isFinite(options.columns) ? options.columns : WIDTH_WITHOUT_SCREEN, MOST_COLUMNS)
  const fit = (line: string): string => fitted(line, columns)
  return [...factLines(details).map(fit), '', ...timelineLines(details, { ...options, columns })]
}

function factLines(details: TaskDetails): string[] {
  const { id, tool, status, outcome, message, principal, worker, createdAt, dueAt, expiresAt } = details
  const facts: readonly (readonly [string, unknown])[] = [
    ['id', id],
    ['tool', tool],
    ['state', outcome === undefined ? status : `${outcome} (${status})`],
    ['message', message],
    ['principal', principal],
    ['created', timeText(createdAt)],
    ['worker', worker],
    ['continues', dueAt && timeText(dueAt)],
    ['deleted', expiresAt && timeText(expiresAt)],
    ['retry of', details.retryOf],
    ['retried as', details.retriedAs],
    ['can be retried', details.canRetry ? 'yes' : undefined],
    ['arguments', payloadText(details.arguments)],
    ['result', payloadText(details.result)],
  ]
  const lines = facts.filter(([, value]) => value !== undefined)
  const questions = Object.keys(details.questions ?? {}).map((key) => ['asks', key] as const)
  return [...lines, ...questions].map(([name, value]) => `${name.padEnd(14)}  ${cleanLine(value)}`)
}

function timelineLines(
  { timeline, dropped, outcome }: TaskDetails,
  { columns, isPlain, now }: DrawingOptions,
): string[] {
  const [first] = timeline
  if (first === undefined) return ['Nothing has happened yet.']
  const start = first.at.getTime()
  const ends = timeline.map(({ at, until }) => (until ?? at).getTime())
  const end = Math.max(outcome === undefined ? now : start, ...ends)
  const nameWidth = Math.min(WIDEST_NAME, Math.max(...timeline.map((entry) => nameOf(entry).length)))
  const barWidth = columns - nameWidth - ENDING - 4
  const scale: Scale = { start, end, width: barWidth, isPlain }
  const lines = timeline.flatMap((entry) => {
    const name = fitted(nameOf(entry), nameWidth).padEnd(nameWidth)
    const bar = barWidth < NARROWEST_BAR ? '' : `${barOf(entry, scale)}  `
    const row = `${name}  ${bar}${endingOf(entry, now)}`
    return [row, ...noteLines(entry)].map((line) => fitted(line, columns).trimEnd())
  })
  const axis = `${''.padEnd(nameWidth)}  ${axisText(scale)}`
  return [
    ...(barWidth < NARROWEST_BAR ? [] : [axis]),
    ...lines,
    ...(dropped > 0 ? [`(${dropped} more entries were not kept)`] : []),
  ]
}

interface Scale {
  readonly start: number
  readonly end: number
  /** In characters. */
  readonly width: number
  readonly isPlain: boolean
}

/** Work is solid, waiting is light, and a claim is a line: the steps are drawn below it. */
const BLOCKS = { claim: '─', step: '█', ask: '░', wait: '░', retry: '▼', end: '■' } as const
const PLAIN_BLOCKS = { claim: '-', step: '#', ask: '.', wait: '.', retry: 'v', end: '*' } as const

function barOf({ type, at, until, how }: TaskTimelineEntry, { start, end, width, isPlain }: Scale): string {
  const span = Math.max(1, end - start)
  const placeOf = (time: number): number =>
    Math.min(width - 1, Math.max(0, Math.floor(((time - start) / span) * width)))
  const isPoint = type === 'retry' || type === 'end'
  const from = placeOf(at.getTime())
  // What was left open when the task ended has no end of its own.
  const last = until?.getTime() ?? (isPoint || how === 'left' ? at.getTime() : end)
  const length = Math.max(1, placeOf(last) - from + (last >= end ? 1 : 0))
  const { [type]: block } = isPlain ? PLAIN_BLOCKS : BLOCKS
  return `${' '.repeat(from)}${block.repeat(Math.min(length, width - from))}`.padEnd(width)
}

function axisText({ start, end, width, isPlain }: Scale): string {
  const total = spanText(end - start)
  const line = (isPlain ? '-' : '╌').repeat(Math.max(0, width - total.length - 3))
  return `0 ${line} ${total}`
}

function nameOf({ type, key, worker, attempt = 1 }: TaskTimelineEntry): string {
  const subject = type === 'claim' ? (worker ?? 'a worker') : (key ?? '')
  const retry = attempt > 1 ? ` #${attempt}` : ''
  return `${type.padEnd(5)} ${cleanLine(subject)}${retry}`.trimEnd()
}

function endingOf({ type, at, until, how, dueAt }: TaskTimelineEntry, now: number): string {
  if (type === 'retry') return 'by an operator'
  if (type === 'end') return cleanLine(how)
  if (until !== undefined) return `${cleanLine(how)}, ${spanText(until.getTime() - at.getTime())}`
  if (how === 'left') return 'left open'
  const lasts = spanText(now - at.getTime())
  return dueAt === undefined
    ? `${cleanLine(how)}, ${lasts}`
    : `${cleanLine(how)}, due in ${spanText(dueAt.getTime() - now)}`
}

/** An error, and a payload if payloads are shown, on lines of their own. */
function noteLines({ error, value }: TaskTimelineEntry): string[] {
  const errors = error === undefined ? [] : clean(error, LONGEST_NOTE).split('\n')
  const notes = [...errors, payloadText(value) ?? ''].filter((note) => note !== '')
  return notes.slice(0, MOST_NOTES).map((note) => `      ${note}`)
}

const LONGEST_NOTE = 1_000
const MOST_NOTES = 8

function payloadText(value: unknown): string | undefined {
  return value === undefined ? undefined : cleanLine(cleanJson(value))
}

function timeText(time: Date): string {
  return `${time.toISOString().replace('T', ' ').slice(0, 19)} UTC`
}

/** Such as 12 ms, 3.4 s, 5 min 20 s, 2 h 5 min, 3 d 4 h. */
function spanText(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole < 1_000) return `${whole} ms`
  if (whole < 60_000) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ] as const
  const index = units.findIndex(([, unit]) => whole >= unit)
  let rest = whole
  const parts = units.slice(index, index + 2).map(([name, unit]) => {
    const count = Math.floor(rest / unit)
    rest -= count * unit
    return count === 0 ? '' : `${count} ${name}`
  })
  return parts.filter((part) => part !== '').join(' ')
}

function fitted(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 3))}...`
}
