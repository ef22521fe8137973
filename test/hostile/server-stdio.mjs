// The hostile server over the standard streams, and what only a process can do wrong.
import { closeSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { beginListening, whenPoured } from './listens.mjs'
import { answerOlder } from './older.mjs'
import { talk } from './talk.mjs'

const response = (id) =>
  `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[{"type":"text","text":"ok"}]}}\n`
const say = (text) => process.stdout.write(text)
const notification = (method, params) =>
  `${JSON.stringify({ jsonrpc: '2.0', method: `notifications/${method}`, params })}\n`

/** Writes for as long as the process lasts, and does what else there is to do in between. */
function endless(piece) {
  const pour = () => {
    if (say(piece)) setImmediate(pour)
    else process.stdout.once('drain', pour)
  }
  pour()
}

/** Writes now, in a system call of its own. */
function write(text) {
  for (;;) {
    try {
      return void writeSync(1, text)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

const TRICKS = {
  silence: () => {},
  // Answered when all that there is to tell is told.
  poured: (id) => void whenPoured().then(() => say(response(id))),
  talks: (id) => talk(id).forEach((text) => say(`${text}\n`)),
  dies: () => process.exit(7),
  dies_midway: (id) => say(response(id).slice(0, 30)) && process.stdout.write('', () => process.exit(0)),
  ignores_its_input: () => {
    process.stdin.pause()
    process.stdin.removeAllListeners()
    setInterval(() => {}, 1_000)
  },
  closes_its_input: () => {
    process.stdin.removeAllListeners()
    closeSync(0)
    setInterval(() => {}, 1_000)
  },
  closes_its_output: () => {
    closeSync(1)
    setInterval(() => {}, 1_000)
  },
  stops: () => process.kill(process.pid, 'SIGSTOP'),
  drips: () => setInterval(() => say(' '), 20),
  tiny_chunks_of_a_line: (id, { bytes }) => {
    const [start, end] = response(id).split('ok')
    write(start)
    for (let n = 0; n < bytes; n += 1) write('x')
    write(end)
  },
  endless_line: () => endless('x'.repeat(65_536)),
  endless_lines: () => endless('no message\n'.repeat(6_000)),
  endless_blanks: () => endless('\n'.repeat(65_536)),
  endless_notifications: (id) => endless(notification('progress', { progressToken: id, progress: 1 }).repeat(1_000)),
  endless_answers: () => endless(response(987_654).repeat(1_000)),
  flood: (id) => {
    const told = [
      notification('progress', { progressToken: id, progress: 1 }),
      notification('message', { level: 'info', data: 'x' }),
      notification('tools/list_changed'),
      '{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}\n',
      'no message\n',
      response(987_654),
      '{"jsonrpc":"2.0","error":{"code":-1,"message":"of nobody"}}\n',
    ]
    const piece = told.join('').repeat(1_000)
    for (let n = 0; n < 50; n += 1) say(piece)
    say(response(id))
  },
  floods_its_errors: (id) => {
    const piece = 'e'.repeat(1_000_000)
    for (let n = 0; n < 100; n += 1) process.stderr.write(piece)
    process.stderr.write('', () => say(response(id)))
  },
  floods_its_errors_and_dies: () => {
    process.stderr.write('e'.repeat(5_000_000), () => process.exit(1))
  },
  another_id: () => say(response(987_654)),
  text_id: (id) => say(response(`"${id}"`)),
  no_id: () => say(response('null')),
  proto_id: () => say(response('"__proto__"')),
  object_id: () => say(response('{"toString":1}')),
  a_batch: (id) => say(`[${response(id).trim()}]\n`),
  answers_twice: (id) => say(response(id).repeat(2)),
  odd_error: (id) => say(`{"jsonrpc":"2.0","id":${id},"error":{"code":"1","message":{}}}\n`),
  no_result: (id) => say(`{"jsonrpc":"2.0","id":${id}}\n`),
}

export function serveStdio(answer, mode) {
  const lines = createInterface(process.stdin)
  lines.on('close', () => process.exit())
  lines.on('line', (line) => {
    const message = JSON.parse(line)
    if (mode === 'older') return void answerOlder(message, say)
    const said = answer(message, mode)
    if (said !== undefined) say(`${said}\n`)
    else if (message.method === 'tools/call') TRICKS[message.params.name](message.id, message.params.arguments)
    else if (message.method === 'subscriptions/listen') listen(message.id, mode)
  })
}

function listen(id, mode) {
  beginListening(
    id,
    mode,
    (text) => say(`${text}\n`),
    (more) => process.stdout.once('drain', more),
  )
}
