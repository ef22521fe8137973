// The process that `rally dev` starts: gives the apps of the file their key and an observer, and runs the file. If the file only
// exports an app, the app is served here.
import { createRequire } from 'node:module'
import { relative } from 'node:path'
import { isatty } from 'node:tty'
import { pathToFileURL } from 'node:url'
import { setDevelopment } from '../server/development.ts'
import { developmentKey } from './key.ts'
import { timeline } from './timeline.ts'

const [node = '', , file = '', port = '', ...args] = process.argv
process.argv = [node, file, ...args]
process.on('uncaughtExceptionMonitor', (error) => {
  const advice = adviceFor(error)
  // Node prints the error itself, with its line.
  if (advice !== undefined) process.stderr.write(`rally dev: ${advice}\n`)
})
if (isatty(0)) explainInput()
setDevelopment({ key: developmentKey(file), observer: timeline((line) => process.stderr.write(`${line}\n`)) })

const { default: main, app = main } = (await import(pathToFileURL(file).href)) as { default?: unknown; app?: unknown }
if (!isServed()) {
  if (isApp(app)) await serveExported(app)
  // The file may still begin to serve.
  else process.once('beforeExit', explainEnd)
}

/** True if the file serves an app itself: it listens, or it reads from the standard input, or has read it to its end. */
function isServed(): boolean {
  return process.getActiveResourcesInfo().includes('TCPServerWrap') || process.stdin.readableFlowing !== null
}

/** A stdio server says nothing in a terminal, and waits for a client that never comes. */
function explainInput(): void {
  const explain = (event: string | symbol): void => {
    if (event !== 'data' && event !== 'readable') return
    process.stdin.off('newListener', explain)
    const command = `npx mcp-rally dev ${relative('', file)}`
    process.stderr.write(
      `The server reads its messages from this terminal. Call it from another one: npx mcp-rally call <tool> -- ${command}\n`,
    )
  }
  process.stdin.on('newListener', explain)
}

/** A file that does nothing ends without an error. */
function explainEnd(): void {
  if (isServed()) return
  process.stderr.write(
    `rally dev: ${relative('', file)} neither serves nor exports an app. Call serve() or stdio() in it, or export the app as "app" or by default.\n`,
  )
}

/** The host is the project's own copy of the package, like the app. */
async function serveExported(exported: object): Promise<void> {
  const host = createRequire(file).resolve('mcp-rally/node')
  const { serve } = (await import(pathToFileURL(host).href)) as {
    serve: (app: object, options: { port: number }) => Promise<{ url: string }>
  }
  const { url } = await serve(exported, { port: Number(port) })
  process.stderr.write(`Serving the exported app on ${url}\n`)
}

function isApp(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  return 'tool' in value && typeof value.tool === 'function' && 'fetch' in value && typeof value.fetch === 'function'
}

function adviceFor(error: unknown): string | undefined {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'EADDRINUSE') return 'another process uses the port. Stop it, or use another port.'
  if (code === 'ERR_MODULE_NOT_FOUND') return 'an import was not found. If it is a package, run npm install.'
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION')
    return `Node ${process.version} does not run TypeScript. Use Node 22.18 or later, or run npm install -D tsx.`
  if (/outside a module|Unexpected token 'export'|"cjs" output format/.test(String(message)))
    return 'Node reads an ES module as CommonJS. Run npm pkg set type=module.'
  return undefined
}
