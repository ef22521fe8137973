// The methods of the protocol: whether the app offers each, and how it is served. Sessions of older revisions serve the ones
// with a `value` from here, and add only what is theirs.
import type { CallSource } from '../flow/caller.ts'
import { noTask } from '../flow/errors.ts'
import type { Cancel } from '../protocol/cancel.ts'
import { INVALID_REQUEST, METHOD_NOT_FOUND, ProtocolError } from '../protocol/errors.ts'
import type { DiscoverResult, Resource } from '../protocol/messages.ts'
import { NOBODY } from '../protocol/shared-limit.ts'
import { META_IDEMPOTENCY_KEY, META_SUBSCRIPTION, TASKS_EXTENSION } from '../protocol/revisions/2026-07-28.ts'
import type { Result } from '../protocol/revisions/rounds.ts'
import type { Skill } from '../protocol/skills.ts'
import { hasCapability } from './capabilities.ts'
import type { Completion } from './completion.ts'
import { complete } from './completion.ts'
import { plainText, withServerMeta } from './content.ts'
import type { AppServices, RequestContext } from './context.ts'
import { failServing, targetNameOf } from './failure.ts'
import type { MethodResult } from './own-method.ts'
import { serveOwn } from './own-method.ts'
import { readRound } from './params.ts'
import type { ListName } from './registry.ts'
import type { RequestInfo } from './request.ts'
import { invalidParams, SUPPORTED_REVISIONS } from './request.ts'
import type { ResolvedRequest } from './resolve.ts'
import { checkUri, targetOf } from './resolve.ts'
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
  text: async (app, request, info, { caller }) => {
    const source = new RequestSource({ info, meta: request.meta, caller }, app.limits)
    const values = JSON.stringify(await completed(app, request, source))
    return `{"resultType":"complete","completion":${values},"_meta":${app.serverMeta}}`
  },
  value: async (app, request, source) => ({ completion: await completed(app, request, source) }),
}

const hasPrompts: Method['isOffered'] = ({ registry }) => registry.hasPrompts
const hasResources: Method['isOffered'] = ({ registry }) => registry.hasResources
const hasSkills = ({ registry }: AppServices): boolean => registry.hasSkills

export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['tools/call', round],
  ['prompts/get', { ...round, isOffered: hasPrompts }],
  ['resources/read', { ...round, isOffered: hasResources }],
  ['tools/list', list('tools')],
  ['prompts/list', { ...list('prompts'), isOffered: hasPrompts }],
  ['resources/list', { ...list('resources'), isOffered: hasResources }],
  ['resources/templates/list', { ...list('resourceTemplates'), isOffered: hasResources }],
  ['skills/list', { ...list('skills'), isOffered: hasSkills }],
  ['skills/get', skillMethod('skill', skillOf)],
  ['resources/directory/read', skillMethod('resources', directoryOf)],
  ['completion/complete', completion],
  ['subscriptions/listen', { text: listen }],
  ['server/discover', { text: discover }],
  ['tasks/get', task],
  ['tasks/update', task],
  ['tasks/cancel', task],
])

/** A method that the app itself brings. */
const ownMethod: Method = {
  text: async (app, request, info, { caller, cancel }) => {
    const source = new RequestSource({ info, meta: request.meta, caller }, app.limits)
    const result = await ownResult(app, request, source, cancel)
    return result === undefined ? undefined : plainText(result, app.serverMeta)
  },
}

/** The result of a method that the app itself brings; `undefined` when the client has cancelled. */
export function ownResult(
  app: AppServices,
  { own, method, params }: ResolvedRequest,
  source: CallSource,
  cancel: Cancel | undefined,
): Promise<MethodResult | undefined> {
  if (own?.kind !== 'method') throw methodNotFound(method)
  return serveOwn(app, { method: own, params, source, cancel })
}

/** How a request is served; `undefined` if the app does not offer its method to this caller. */
export function methodOf(app: AppServices, { method, own }: ResolvedRequest): Method | undefined {
  const known = METHODS.get(method) ?? (own?.kind === 'method' ? ownMethod : undefined)
  return known?.isOffered?.(app) === false ? undefined : known
}

export function methodNotFound(method: string): ProtocolError {
  return new ProtocolError(METHOD_NOT_FOUND, `Method not found: ${method.slice(0, 100)}`)
}

/** A method that returns one entry of a skill, which clients may cache. */
function skillMethod(member: string, read: (request: ResolvedRequest) => unknown): Method {
  return {
    isOffered: hasSkills,
    text: ({ registry, serverMeta }, request, _info, { caller }) => {
      const value = JSON.stringify(read(request))
      const isForAll = caller === undefined && request.own?.visible === undefined
      return `{"resultType":"complete","${member}":${value},${registry.hintsText(isForAll)},"_meta":${serverMeta}}`
    },
    value: (_app, request) => ({ [member]: read(request) }),
  }
}

function skillOf({ own, params }: ResolvedRequest): Skill {
  if (own?.kind === 'skill') return own.listing
  throw invalidParams(`Skill not found: ${checkUri(params?.['uri'])}`)
}

/** A skill has at most 512 files, so a folder is one page. */
function directoryOf({ own, params }: ResolvedRequest): readonly Resource[] {
  if (own?.kind !== 'directory') throw invalidParams(`Not a directory: ${checkUri(params?.['uri'])}`)
  const cursor = params?.['cursor'] ?? undefined
  if (cursor !== undefined) throw invalidParams('Invalid cursor: this server did not issue it. Start the list again.')
  return own.children
}

function list(name: ListName): Method {
  return {
    text: ({ registry, serverMeta, limits }, { params, meta }, info, { caller, overHttp }) => {
      const viewer = new RequestSource({ info, meta, caller, overHttp }, limits)
      return registry.listText(name, params?.['cursor'], viewer, serverMeta)
    },
    value: ({ registry }, { params }, viewer) => registry.list(name, params?.['cursor'], viewer),
  }
}

async function completed(app: AppServices, request: ResolvedRequest, source: CallSource): Promise<Completion> {
  const { completion: target, params = {} } = request
  try {
    return await complete(target, params, source)
  } catch (error) {
    return failServing(app, error, targetNameOf(request), source.caller)
  }
}

function discover(
  { registry, instructions, tasks, seal, once, serverMeta, apps }: AppServices,
  _request: ResolvedRequest,
  info: RequestInfo,
  { caller }: RequestContext,
): string {
  const inApps = apps?.capabilities(info)
  const extensions = {
    ...registry.extensions,
    ...inApps?.extensions,
    ...(tasks && { [TASKS_EXTENSION]: {} }),
    // Another process would not know a repeat if the keys are this one's alone. Callers without a principal have no records.
    ...(seal.keyedFlowId !== undefined &&
      !seal.ephemeral && {
        [META_IDEMPOTENCY_KEY]: { records: once !== undefined && caller !== undefined },
      }),
  }
  const discovered: Pick<DiscoverResult, 'supportedVersions' | 'capabilities' | 'instructions'> = {
    supportedVersions: [...SUPPORTED_REVISIONS],
    capabilities: { ...inApps, ...registry.capabilities(), ...(Object.keys(extensions).length > 0 && { extensions }) },
    ...(instructions !== undefined && { instructions }),
  }
  const members = JSON.stringify(discovered).slice(1, -1)
  return `{"resultType":"complete",${members},${registry.hintsText(caller === undefined && inApps === undefined)},"_meta":${serverMeta}}`
}

async function listen(
  { registry, subscriptions, serverMeta, tasks, limits }: AppServices,
  { id, params, scopes }: ResolvedRequest,
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
  const meta = JSON.stringify({ [META_SUBSCRIPTION]: id }).slice(1)
  const follow = (tell: (message: string) => void): (() => void) =>
    tasks?.followText(taskIds, (fields, taskMeta) =>
      tell(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":{${taskMeta}${meta},${fields}}}`),
    ) ?? nothing
  const owner = principal ?? NOBODY
  const source = new RequestSource({ info, meta: undefined, caller }, limits)
  const sees = (uri: string): boolean => registry.sees(uri, source)
  const ended = await subscriptions.listen({ id, filter: agreed, scopes, sees, owner, notify, cancel, follow })
  return ended
    ? `{"resultType":"complete","_meta":${withServerMeta({ [META_SUBSCRIPTION]: id }, serverMeta)}}`
    : undefined
}

function nothing(): void {}
