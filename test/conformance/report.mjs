// What a run of the suite comes to: a table of its scenarios, and every check that is not a plain success.

/** The suite passes over warnings and over what it could not test. Here both are failures. */
const COUNTS_AS = new Map([
  ['SUCCESS', 'passed'],
  // Says which of two allowed ways a server goes.
  ['INFO', 'noted'],
])

/** Run with the rest and not scored by the suite. What is left out, and why. */
const NOT_COUNTED = [
  { scenarios: /^tasks-status-notifications$/, why: 'the suite has not written it yet' },
  { scenarios: /^auth\/dpop(-nonce)?$/, why: 'SEP-1932 is a proposal' },
  { scenarios: /^auth\/wif-jwt-bearer$/, why: 'SEP-1933 is a proposal' },
]

const whyNotCounted = (name) => NOT_COUNTED.find(({ scenarios }) => scenarios.test(name))?.why

/** What the specification leaves to a server, by the check that is then skipped. */
const LEFT_TO_THE_SERVER = new Set([
  // A session is a sealed id that every instance opens, so none of them can end it for the others: DELETE is a 405.
  'server-session-delete-accepted',
  'server-session-terminated-returns-404',
])

/** Requests that are none of the revision's, by the name of the check that is then skipped. */
const NOT_IN_THE_REVISION = new Set([
  'ClientMcpMethodHeader_initialize',
  'ClientMcpMethodHeader_notifications_initialized',
])

/** Notes of every single message, of use only where something failed. */
const TRAFFIC = /^(incoming|outgoing)-(auth-)?(request|response)$/

const LONGEST_DETAILS = 2_000

/** Counts the checks of a run, of at least so many scenarios, and describes it. */
export function describeRun({ status, output, scenarios }, atLeast) {
  const counted = scenarios.filter(({ name }) => whyNotCounted(name) === undefined).map(judge)
  const left = scenarios.filter(({ name }) => whyNotCounted(name) !== undefined)
  const { passed, failed } = sum(counted)
  const broken = []
  if (scenarios.length < atLeast) broken.push(`The suite ran ${scenarios.length} of ${atLeast} scenarios.`)
  if (status !== 0 && failed === 0 && !left.map(judge).some((one) => one.failed > 0))
    broken.push(`The suite ended with status ${status}.`)
  const parts = [
    table(counted),
    ...counted.flatMap(({ name, remarks }) => remarks.map((remark) => describeRemark(name, remark))),
    ...left.map(({ name }) => `Not counted: ${name} (${whyNotCounted(name)})`),
    ...broken,
    ...(broken.length > 0 ? [`It said:\n\n${output.trim()}`] : []),
  ]
  return { passed, failed: failed + (broken.length > 0 ? 1 : 0), text: `${parts.join('\n\n')}\n` }
}

export function sum(counts) {
  const total = { passed: 0, failed: 0 }
  for (const { passed, failed } of counts) {
    total.passed += passed
    total.failed += failed
  }
  return total
}

function judge({ name, checks }) {
  const verdicts = (checks ?? []).map(verdictOf)
  const passed = verdicts.filter((verdict) => verdict === 'passed').length
  const failed = verdicts.filter((verdict) => verdict === 'failed').length
  const isTold = ({ id, status }) => status !== 'SUCCESS' && (failed > 0 || !TRAFFIC.test(id))
  const remarks = (checks ?? []).filter(isTold)
  if (passed + failed > 0) return { name, passed, failed, remarks }
  return {
    name,
    passed,
    failed: 1,
    remarks: [...remarks, { status: 'FAILURE', id: 'no-check', description: NO_CHECK }],
  }
}

function verdictOf({ id, name, status }) {
  if (status === 'SKIPPED' && (LEFT_TO_THE_SERVER.has(id) || NOT_IN_THE_REVISION.has(name))) return 'noted'
  return COUNTS_AS.get(status) ?? 'failed'
}

const NO_CHECK = 'The scenario made no check that counts.'

function table(rows) {
  const width = Math.max(...rows.map(({ name }) => name.length), 'scenario'.length)
  const line = (name, passed, failed) => `${name.padEnd(width)}  ${passed.padStart(6)}  ${failed.padStart(6)}`
  const total = sum(rows)
  return [
    line('scenario', 'passed', 'failed'),
    ...rows.map(({ name, passed, failed }) => line(name, String(passed), String(failed))),
    line('all', String(total.passed), String(total.failed)),
  ].join('\n')
}

function describeRemark(scenario, { status, id, description, errorMessage, details }) {
  const lines = [`${status} ${scenario}: ${id}`, description, errorMessage, details && brief(JSON.stringify(details))]
  return lines.filter(Boolean).join('\n  ')
}

function brief(text) {
  return text.length > LONGEST_DETAILS ? `${text.slice(0, LONGEST_DETAILS)} ... (${text.length} characters)` : text
}
