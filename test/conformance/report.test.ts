import { describe, expect, test } from 'vitest'
import type { Check, Run } from './report.mjs'
import { describeRun, sum } from './report.mjs'

function check(status: string, more: Partial<Check> = {}): Check {
  return { id: `is-${status.toLowerCase()}`, status, description: 'Something holds', ...more }
}

function run(scenarios: Record<string, Check[] | undefined>, more: Partial<Run> = {}): Run {
  return {
    status: 0,
    output: 'All is well.',
    scenarios: Object.entries(scenarios).map(([name, checks]) => ({ name, checks })),
    ...more,
  }
}

describe('a run of the suite', () => {
  test.each([
    ['SUCCESS', { passed: 2, failed: 0 }],
    ['INFO', { passed: 1, failed: 0 }],
    ['FAILURE', { passed: 1, failed: 1 }],
    ['WARNING', { passed: 1, failed: 1 }],
    ['SKIPPED', { passed: 1, failed: 1 }],
    ['SOMETHING_NEW', { passed: 1, failed: 1 }],
  ])('counts a check that is a %s', (status, counts) => {
    expect(describeRun(run({ caching: [check('SUCCESS'), check(status)] }), 1)).toMatchObject(counts)
  })

  test('has a line for every scenario and one for all', () => {
    const { text } = describeRun(
      run({ caching: [check('SUCCESS'), check('FAILURE')], 'tools-list': [check('SUCCESS')] }, { status: 1 }),
      2,
    )
    expect(text.split('\n').slice(0, 4)).toEqual([
      'scenario    passed  failed',
      'caching          1       1',
      'tools-list       1       0',
      'all              2       1',
    ])
  })

  test('tells of every check that is not a plain success, with what it found', () => {
    const warning = check('WARNING', { errorMessage: 'It is late.', details: { ms: 12 } })
    const { text } = describeRun(run({ caching: [check('SUCCESS'), warning, check('INFO')] }), 1)
    expect(text).toContain('WARNING caching: is-warning\n  Something holds\n  It is late.\n  {"ms":12}\n')
    expect(text).toContain('INFO caching: is-info\n  Something holds\n')
    expect(text).not.toContain('SUCCESS')
  })

  test('takes note of a request that was not seen because the revision has none such', () => {
    const skipped = (name: string): Check => check('SKIPPED', { name })
    const initialize = skipped('ClientMcpMethodHeader_initialize')
    const list = skipped('ClientMcpMethodHeader_tools_list')
    expect(describeRun(run({ headers: [check('SUCCESS'), initialize] }), 1)).toMatchObject({ passed: 1, failed: 0 })
    expect(describeRun(run({ headers: [check('SUCCESS'), list] }), 1)).toMatchObject({ passed: 1, failed: 1 })
  })

  test('tells of the traffic only where something failed', () => {
    const traffic = check('INFO', { id: 'incoming-auth-request' })
    expect(describeRun(run({ auth: [check('SUCCESS'), traffic] }), 1).text).not.toContain('incoming-auth-request')
    expect(describeRun(run({ auth: [check('FAILURE'), traffic] }), 1).text).toContain('incoming-auth-request')
  })

  test.each([
    ['threw', undefined],
    ['checked nothing', []],
    ['only took note', [check('INFO')]],
  ])('fails for a scenario that %s', (_what, checks) => {
    const { passed, failed, text } = describeRun(run({ caching: checks }), 1)
    expect({ passed, failed }).toEqual({ passed: 0, failed: 1 })
    expect(text).toContain('FAILURE caching: no-check')
  })

  test('fails when scenarios are missing, and shows what the suite said', () => {
    const { failed, text } = describeRun(run({ caching: [check('SUCCESS')] }), 40)
    expect(failed).toBe(1)
    expect(text).toContain('The suite ran 1 of 40 scenarios.\n\nIt said:\n\nAll is well.')
  })

  test.each([1, null])('fails when the suite ended with %s though its checks passed', (status) => {
    const { failed, text } = describeRun(run({ caching: [check('SUCCESS')] }, { status }), 1)
    expect(failed).toBe(1)
    expect(text).toContain(`The suite ended with status ${status}.`)
  })

  test('fails once when the suite did not run at all', () => {
    expect(describeRun(run({}, { status: 1 }), 40)).toMatchObject({ passed: 0, failed: 1 })
  })

  test('takes note of what the specification leaves to a server', () => {
    const skipped = (id: string): Check => check('SKIPPED', { id })
    const left = skipped('server-session-delete-accepted')
    expect(describeRun(run({ session: [check('SUCCESS'), left] }), 1)).toMatchObject({ passed: 1, failed: 0 })
    const failing = check('FAILURE', { id: 'server-session-delete-accepted' })
    expect(describeRun(run({ session: [check('SUCCESS'), failing] }), 1)).toMatchObject({ passed: 1, failed: 1 })
  })

  test('does not fail for the status that a scenario left out has brought about', () => {
    const scenarios = { caching: [check('SUCCESS')], 'tasks-status-notifications': [check('FAILURE')] }
    expect(describeRun(run(scenarios, { status: 1 }), 2)).toMatchObject({ passed: 1, failed: 0 })
  })

  test('leaves the scenario out that is yet to be written, and says so', () => {
    const scenarios = { caching: [check('SUCCESS')], 'tasks-status-notifications': [check('FAILURE')] }
    const { passed, failed, text } = describeRun(run(scenarios), 2)
    expect({ passed, failed }).toEqual({ passed: 1, failed: 0 })
    expect(text).toContain('Not counted: tasks-status-notifications (the suite has not written it yet)')
  })
})

test('several runs add up', () => {
  expect(
    sum([
      { passed: 152, failed: 0 },
      { passed: 150, failed: 2 },
    ]),
  ).toEqual({ passed: 302, failed: 2 })
})
