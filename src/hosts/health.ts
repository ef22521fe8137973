// The probes of an orchestrator or a load balancer: is the process alive, and should it get requests?
import type { IncomingMessage, ServerResponse } from 'node:http'
import { RallyError } from '../protocol/errors.ts'
import { shown } from '../protocol/text.ts'
import type { App } from '../server/app.ts'

export interface HealthOptions {
  /** Answers 200 as long as the process serves anything. `false` turns it off. Default '/livez'. */
  livezPath?: string | false
  /**
   * Answers 200 if the instance should get requests, or else 503: it is shutting down, its store does not answer, or its event loop
   * is more than `maxLagMs` late. `false` turns it off. Default '/readyz'.
   */
  readyzPath?: string | false
}

/** Answers the request if it is a probe. Otherwise it does nothing, and returns `false`. */
export type ProbeHandler = (request: IncomingMessage, response: ServerResponse) => boolean

/** Host, Origin and token of a probe are not checked: it is sent to the address of the instance, and its answer is no secret. */
export function probeHandler(app: App, options: HealthOptions, endpointPath: string, maxLagMs: number): ProbeHandler {
  const { livezPath = '/livez', readyzPath = '/readyz' } = options
  checkPaths({ livezPath, readyzPath }, endpointPath)
  return (request, response) => {
    const { url = '' } = request
    const end = url.indexOf('?')
    const path = end === -1 ? url : url.slice(0, end)
    if (path !== livezPath && path !== readyzPath) return false
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { Allow: 'GET, HEAD' }).end()
    } else if (path === livezPath) {
      answer(response, 200, 'alive')
    } else {
      void app.readiness({ maxLagMs }).then((readiness) => {
        if (readiness.ready) answer(response, 200, 'ready')
        else answer(response, 503, `not ready: ${readiness.reason}`)
      })
    }
    return true
  }
}

function answer(response: ServerResponse, status: number, text: string): void {
  const body = `${text}\n`
  const headers = { 'Content-Type': 'text/plain', 'Content-Length': body.length, 'Cache-Control': 'no-store' }
  response.writeHead(status, headers).end(body)
}

function checkPaths(paths: Readonly<Record<string, string | false>>, endpointPath: string): void {
  const taken = new Map([[endpointPath, 'path']])
  for (const [name, path] of Object.entries(paths)) {
    if (path === false) continue
    if (typeof path !== 'string' || !path.startsWith('/')) {
      throw new RallyError(
        'OPTION_INVALID',
        `\`${name}\` must be a path that begins with "/", or false, got ${shown(path)}.`,
      )
    }
    const other = taken.get(path)
    if (other !== undefined) {
      throw new RallyError(
        'OPTION_INVALID',
        `\`${name}\` must not be the same as \`${other}\`, got "${path}" for both.`,
      )
    }
    taken.set(path, name)
  }
}
