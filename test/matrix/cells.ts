// Runs every cell of one wire: a call, what its user was shown, and what it came to.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { MatrixClient } from './clients.ts'
import { CONNECT } from './clients.ts'
import type { Servers } from './servers.ts'
import { servers, START_MS } from './servers.ts'
import type { Case, Row, Shown, Wire } from './table.ts'
import { casesOf, isOwnChoice, ROWS, titleOf } from './table.ts'
import { CHANGED_MIND, User } from './user.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Which cell of the matrix a test is. */
    cell?: { row: Row; name: string }
  }
}

export function runCells(wire: Wire): void {
  let running: Servers
  beforeAll(async () => {
    running = await servers(wire)
  }, START_MS)
  afterAll(() => running.close())

  const rows = ROWS.filter((row) => row.wire === wire && casesOf(row).length > 0)
  describe.each(rows.map((row) => [titleOf(row), row] as const))('%s', (_title, row) => {
    let client: MatrixClient
    beforeAll(async () => {
      const revision = isOwnChoice(row) ? undefined : row.revision
      client = await CONNECT[row.client](running.addressOf(row.server), revision)
    }, START_MS)
    afterAll(() => client.close())

    test('this revision is what the two speak', () => {
      expect(client.revision).toBe(row.revision)
    })

    test.for(casesOf(row).map((each) => [each.name, each] as const))('%s', async ([name, given], { task }) => {
      task.meta.cell = { row, name }
      await runCell(client, given)
    })
  })
}

async function runCell(client: MatrixClient, given: Case): Promise<void> {
  const { tool, args, rounds, does, text } = given
  const user = new User(given)
  const calling = client.call(user, tool, args)
  if (does === 'abort') {
    await expect(calling.catch(wordsOf)).resolves.toContain(CHANGED_MIND)
    await user.withdrawn
    // Both sides go on.
    await runCell(client, { ...given, does: 'accept' })
  } else {
    expect(await calling).toEqual({ text, isError: false })
  }
  expect(user.shown.map(comparable)).toEqual(rounds.map(comparable))
}

/** Of a round, in any order, and with what is the same in every address. */
function comparable(round: readonly Shown[]): unknown[] {
  return round
    .map((shown) =>
      shown.mode === 'url' ? { ...shown, url: shown.url.replace(/:\d+\/\?token=.*/, '/?token=') } : shown,
    )
    .toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return `${error.message} ${error.cause === undefined ? '' : wordsOf(error.cause)}`
}
