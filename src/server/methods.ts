// The methods of the protocol: whether the app offers each, and how it is served. Sessions of older revisions serve the ones
// with a `value` from here, and add only what is theirs.
import type { CallSource } from '../flow/caller.ts'
import { noTask } from '../flow/errors.ts'
import { INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import type { DiscoverResult } from '../protocol/messages.ts'
import { NOBODY } from '../protocol/shared-limit.ts'
import { META_IDEMPOTENCY_KEY, META_SUBSCRIPTION, TASKS_EXTENSION } from '../protocol/revisions/2026-07-28.ts'
import type { Result } from '../protocol/revisions/rounds.ts'
import { hasCapability } from './capabilities.ts'
import { complete } from './completion.ts'
import { withServerMeta } from './content.ts'
import type { AppServices, RequestContext } from './context.ts'
import { readRound } from './params.ts'
import type { ListName } from './registry.ts'
import type { RequestInfo } from './request.ts'
import { SUPPORTED_REVISIONS } from './request.ts'
import type { ResolvedRequest } from './resolve.ts'
import { targetOf } from './resolve.ts'
import { serveRound } from './round.ts'
import { RequestSource } from './source.ts'
import type { Viewer } from './visibility.ts'
import { readFilter } from './subscriptions.ts'

export interface Method {
  /** Absent: always. An app that does not offer a method answers as if it did not know it. */
  readonly isOffered?: (app: AppServices) => boolean
  /** True if it serves a round of a flow. Middleware then runs once the state is open. */
  readonly isRound?: true
  /** The text of the result in 2026-07-28; `undefined` when the client has cancelled. Throws what to answer instead. */
  readonly text: (
    app: AppServices,
    request: ResolvedRequest,
    info: RequestInfo,
    context: RequestContext,
  ) => string | undefined | Promise<string | undefined>
  /** The result as a value that holds nothing of one revision alone. */
  readonly value?: (app: AppServices, request: ResolvedRequest, viewer: Viewer) => Result | Promise<Result>
}

const round: Method = {
  isRound: true,
  text: (app, request, info, context) => serveRound(app, targetOf(request), readRound(request, info, context)),
}

const task: Method = {
  isOffered: ({ tasks }) => tasks !== undefined,
  text: ({ tasks }, { method, params = {} }, info, { caller }) => tasks?.serve(method, params, info, caller?.principal),
}

const completion: Method = {
  isOffered: ({ registry }) => registry.hasCompletions,
  text: async ({ serverMeta, limits }, request, info, { caller }) => {
    const source = new RequestSource({ info, meta: request.meta, caller }, limits)
    return `{"resultType":"complete","completion":${JSON.stringify(await completed(request, source))},"_meta":${serverMeta}}`
  },
  value: async (_app, request, source) => ({ completion: await completed(request, source) }),
}

const hasPrompts: Method['isOffered'] = ({ registry }) => registry.hasPrompts
const hasResources: Method['isOffered'] = ({ registry }) => registry.hasResources

export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['tools/call', round],
  ['prompts/get', { ...round, isOffered: hasPrompts }],
  ['resources/read', { ...round, isOffered: hasResources }],
  ['tools/list', list('tools')],
  ['prompts/list', { ...list('prompts'), isOffered: hasPrompts }],
  ['resources/list', { ...list('resources'), isOffered: hasResources }],
  ['resources/templates/list', { ...list('resourceTemplates'), isOffered: hasResources }],
  ['completion/complete', completion],
  ['subscriptions/listen', { text: listen }],
  ['server/discover', { text: discover }],
  ['tasks/get', task],
  ['tasks/update', task],
  ['tasks/cancel', task],
])

function list(name: ListName): Method {
  return {
    text: ({ registry, serverMeta, limits }, { params, meta }, info, { caller, overHttp }) => {
      const viewer = new RequestSource({ info, meta, caller, overHttp }, limits)
      return registry.listText(name, params?.['cursor'], viewer, serverMeta)
    },
    value: ({ registry }, { params }, viewer) => registry.list(name, params?.['cursor'], viewer),
  }
}

function completed(
  { completion: target, params = {} }: ResolvedRequest,
  source: CallSource,
): ReturnType<typeof complete> {
  return complete(target, params, source)
}

function discover(
  { registry, instructions, tasks, seal, once, serverMeta }: AppServices,
  _request: ResolvedRequest,
  _info: RequestInfo,
  { caller }: RequestContext,
): string {
  const extensions = {
    ...(tasks && { [TASKS_EXTENSION]: {} }),
    // Another process would not know a repeat if the keys are this one's alone. Callers without a principal have no records.
    ...(seal.keyedFlowId !== undefined &&
      !seal.ephemeral && {
        [META_IDEMPOTENCY_KEY]: { records: once !== undefined && caller !== undefined },
      }),
  }
  const discovered: Pick<DiscoverResult, 'supportedVersions' | 'capabilities' | 'instructions'> = {
    supportedVersions: [...SUPPORTED_REVISIONS],
    capabilities: { ...registry.capabilities(), ...(Object.keys(extensions).length > 0 && { extensions }) },
    ...(instructions !== undefined && { instructions }),
  }
  const members = JSON.stringify(discovered).slice(1, -1)
  return `{"resultType":"complete",${members},${registry.hintsText(caller === undefined)},"_meta":${serverMeta}}`
}

async function listen(
  { registry, subscriptions, serverMeta, tasks, limits }: AppServices,
  { id, params, meta: requestMeta, scopes }: ResolvedRequest,
  info: RequestInfo,
  { notify, cancel, caller }: RequestContext,
): Promise<string | undefined> {
  const principal = caller?.principal
  const has = { prompts: registry.hasPrompts, resources: registry.hasResources, tasks: tasks !== undefined }
  const filter = readFilter(params?.['notifications'], has, limits)
  if (filter.taskIds !== undefined && !hasCapability(info.capabilities, 'tasks')) throw noTask()
  if (notify === undefined) {
    throw new ProtocolError(INVALID_REQUEST, 'Invalid request: this needs a stream, so accept text/event-stream')
  }
  const taskIds = (filter.taskIds && (await tasks?.own(filter.taskIds, principal))) ?? []
  const agreed = filter.taskIds === undefined ? filter : { ...filter, taskIds }
  const meta = `"_meta":${JSON.stringify({ [META_SUBSCRIPTION]: id })}`
  const follow = (tell: (message: string) => void): (() => void) =>
    tasks?.followText(taskIds, (fields) =>
      tell(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{${meta},${fields}}}`),
    ) ?? nothing
  const owner = principal ?? NOBODY
  const source = new RequestSource({ info, meta: requestMeta, caller }, limits)
  const sees = (uri: string): boolean => registry.sees(uri, source)
  const ended = await subscriptions.listen({ id, filter: agreed, scopes, sees, owner, notify, cancel, follow })
  return ended
    ? `{"resultType":"complete","_meta":${withServerMeta({ [META_SUBSCRIPTION]: id }, serverMeta)}}`
    : undefined
}

function nothing(): void {}
