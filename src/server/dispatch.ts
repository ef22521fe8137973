// From a parsed message to a response, whatever host it came through.
import { INVALID_REQUEST, METHOD_NOT_FOUND, ProtocolError } from '../protocol/errors.ts'
import type { RequestId } from '../protocol/messages.ts'
import { META_SUBSCRIPTION } from '../protocol/revisions/2026-07-28.ts'
import { noTask } from '../flow/errors.ts'
import { hasCapability } from './capabilities.ts'
import { callTool, getPrompt, readResource } from './carry.ts'
import { completionText } from './completion.ts'
import { withServerMeta } from './content.ts'
import type { Context, DispatchHost } from './context.ts'
import type { Reply } from './reply.ts'
import { errorReply, internalError, resultReply } from './reply.ts'
import type { Envelope, RequestInfo } from './request.ts'
import { idOf, isHandshake, readEnvelope, readMeta, unsupportedVersion } from './request.ts'
import { readFilter } from './subscriptions.ts'

/** Gives the response, or nothing where none is due: to a notification, or to a call that was cancelled. */
export async function dispatch(host: DispatchHost, message: unknown, context: Context): Promise<Reply | undefined> {
  let envelope: Envelope
  let info: RequestInfo
  try {
    envelope = readEnvelope(message)
    if (envelope.id === undefined) return undefined
    if (isHandshake(envelope)) throw unsupportedVersion(envelope.params?.['protocolVersion'])
    info = readMeta(envelope.params)
  } catch (error) {
    // Whatever is wrong with the message itself is the caller's mistake, and says so in the status.
    return errorReply(idOf(message), error instanceof ProtocolError ? error : internalError(), 400)
  }
  const { id, method, params = {} } = envelope
  try {
    const result = await serve(host, id, method, params, info, context)
    return result === undefined ? undefined : resultReply(id, result)
  } catch (error) {
    if (error instanceof ProtocolError) return errorReply(id, error)
    host.logger.error(`Serving ${method} failed.`, { error })
    return errorReply(id, internalError())
  }
}

function serve(
  host: DispatchHost,
  id: RequestId,
  method: string,
  params: Record<string, unknown>,
  info: RequestInfo,
  context: Context,
): string | Promise<string | undefined> {
  const { registry, serverMeta } = host
  switch (method) {
    case 'tools/call':
      return callTool(host, params, info, context)
    case 'prompts/get':
      if (registry.prompts.size === 0) break
      return getPrompt(host, params, info, context)
    case 'resources/read':
      if (!registry.hasResources) break
      return readResource(host, params, info, context)
    case 'tools/list':
      return registry.listText('tools', registry.tools, params['cursor'], context.principal, serverMeta)
    case 'prompts/list':
      if (registry.prompts.size === 0) break
      return registry.listText('prompts', registry.prompts, params['cursor'], context.principal, serverMeta)
    case 'resources/list':
      if (!registry.hasResources) break
      return registry.listText('resources', registry.resources, params['cursor'], context.principal, serverMeta)
    case 'resources/templates/list':
      if (!registry.hasResources) break
      return registry.listText('resourceTemplates', registry.templates, params['cursor'], context.principal, serverMeta)
    case 'completion/complete':
      if (!registry.hasCompletions) break
      return completionText(params, (kind, name) => registry.completionTarget(kind, name), serverMeta)
    case 'subscriptions/listen':
      return listen(host, id, params, info, context)
    case 'server/discover':
      return registry.discoverText(host.instructions, context.principal, serverMeta, host.tasks !== undefined)
  }
  const served = method.startsWith('tasks/') ? host.tasks?.serve(method, params, info, context.principal) : undefined
  if (served !== undefined) return served
  throw new ProtocolError(METHOD_NOT_FOUND, `Method not found: ${method.slice(0, 100)}`)
}

async function listen(
  { registry, subscriptions, serverMeta, tasks }: DispatchHost,
  id: RequestId,
  params: Record<string, unknown>,
  info: RequestInfo,
  { notify, cancel, principal }: Context,
): Promise<string | undefined> {
  const has = { prompts: registry.prompts.size > 0, resources: registry.hasResources, tasks: tasks !== undefined }
  const filter = readFilter(params['notifications'], has)
  if (filter.taskIds !== undefined && !hasCapability(info.capabilities, 'tasks')) throw noTask()
  if (notify === undefined) {
    throw new ProtocolError(INVALID_REQUEST, 'Invalid request: this needs a stream, so accept text/event-stream')
  }
  const taskIds = (filter.taskIds && (await tasks?.own(filter.taskIds, principal))) ?? []
  const agreed = filter.taskIds === undefined ? filter : { ...filter, taskIds }
  const meta = `"_meta":${JSON.stringify({ [META_SUBSCRIPTION]: id })}`
  const follow = (tell: (message: string) => void): (() => void) =>
    tasks?.followText(taskIds, (task) =>
      tell(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{${meta},${task}}}`),
    ) ?? nothing
  const ended = await subscriptions.listen(id, agreed, notify, cancel, follow)
  return ended
    ? `{"resultType":"complete","_meta":${withServerMeta({ [META_SUBSCRIPTION]: id }, serverMeta)}}`
    : undefined
}

function nothing(): void {}
