// A child process of the run, spoken to over IPC: one question at a time, each answered within a limit.
import { fork } from 'node:child_process'

export function startChild(name, file, env = {}, execPath = process.execPath) {
  const child = fork(file, {
    execPath,
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })

  return { pid: child.pid, next, ask, stop: () => child.kill('SIGKILL') }

  function ask(message, milliseconds) {
    child.send(message)
    return next(milliseconds)
  }

  function next(milliseconds = 10_000) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(settle, milliseconds, reject, new Error(`${name} said nothing for ${milliseconds} ms`))
      const onMessage = (message) =>
        message.error ? settle(reject, new Error(message.error)) : settle(resolve, message)
      const onExit = (code, signal) => settle(reject, new Error(`${name} ended early (${signal ?? code})`))
      child.on('message', onMessage).on('exit', onExit)

      function settle(how, value) {
        clearTimeout(timer)
        child.off('message', onMessage).off('exit', onExit)
        how(value)
      }
    })
  }
}
