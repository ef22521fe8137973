// The public surface, name by name: a change here is a decision, and one there without one here fails.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as main from 'mcp-rally'
import * as bearer from 'mcp-rally/bearer'
import * as client from 'mcp-rally/client'
import * as node from 'mcp-rally/node'
import * as postgres from 'mcp-rally/postgres'
import * as sqlite from 'mcp-rally/sqlite'
import * as testing from 'mcp-rally/testing'
import { expect, test } from 'vitest'
import { ROOT } from './consumer.ts'

const entries = [
  {
    path: '.',
    module: main,
    values: [
      'AuthenticationError',
      'Declined',
      'FlowError',
      'MemoryOnceStore',
      'MemoryStore',
      'MissingCapability',
      'ProtocolError',
      'RallyError',
      'StepFailed',
      'elicit',
      'inputRequired',
      'outcome',
      'rally',
      'resolver',
      'roots',
      'sample',
      'send',
      'visit',
    ],
    types: [
      'App',
      'AppOptions',
      'Asks',
      'AuthErrorCode',
      'Authenticate',
      'AuthenticatedCaller',
      'Bus',
      'CallSource',
      'Caller',
      'CallerClaims',
      'Capability',
      'ChangeEvent',
      'ChangeNotifier',
      'ChoiceOption',
      'ClaimRequest',
      'ClaimedTask',
      'ClientErrorCode',
      'ClientInfo',
      'CompletionContext',
      'CompletionFunction',
      'CompletionResult',
      'CompletionSource',
      'ContentBlock',
      'ElicitationAnswer',
      'FetchHandler',
      'FlowErrorCode',
      'ForeignErrorCode',
      'HandlerErrorCode',
      'HandlerOptions',
      'HttpOptions',
      'HttpRequest',
      'InputRequired',
      'InputRequiredOptions',
      'Io',
      'KeySecret',
      'LegacyErrorCode',
      'LegacyOptions',
      'LimitOptions',
      'LogLevel',
      'Logger',
      'Mailbox',
      'MemoryStoreOptions',
      'NewTask',
      'NotJson',
      'OnceClaim',
      'OnceStore',
      'OptInRevision',
      'PromptHandler',
      'PromptMessage',
      'PromptOptions',
      'PromptResult',
      'PromptReturn',
      'ProtocolErrorCode',
      'Rally',
      'RallyErrorCode',
      'RallyOptions',
      'ReadResult',
      'ReadReturn',
      'Readiness',
      'ReadinessOptions',
      'Recordable',
      'RenewedLease',
      'Requirement',
      'Requirements',
      'ResolvedNeeds',
      'Resolver',
      'ResolverOptions',
      'ResolverOutcome',
      'ResourceContent',
      'ResourceOptions',
      'ResourceReader',
      'RoundResponses',
      'Schema',
      'SchemaErrorCode',
      'SendOptions',
      'SetupErrorCode',
      'ShedLoad',
      'StateCodec',
      'StateErrorCode',
      'StepContext',
      'StepOptions',
      'Store',
      'StoreErrorCode',
      'StoredEvent',
      'TaskChange',
      'TaskEvent',
      'TaskLease',
      'TaskMode',
      'TaskPosition',
      'TaskPrecondition',
      'TaskRecord',
      'TaskStatus',
      'TaskStore',
      'TaskUsage',
      'TasksOptions',
      'TemplateOptions',
      'TemplateReader',
      'TemplateVariables',
      'TestingErrorCode',
      'ToolHandler',
      'ToolOptions',
      'ToolResult',
      'ToolReturn',
      'VisitOptions',
    ],
  },
  {
    path: './node',
    module: node,
    values: ['nodeHandler', 'serve', 'stdio'],
    types: ['Authenticate', 'AuthenticatedCaller', 'HttpRequest', 'ServeOptions', 'Serving', 'StdioOptions'],
  },
  {
    path: './client',
    module: client,
    values: ['ClientError', 'ProtocolError', 'RallyError', 'connect'],
    types: [
      'AnswerContext',
      'Answerers',
      'AppLike',
      'AskingRound',
      'AskingTask',
      'CallOptions',
      'CallRound',
      'CallToolResult',
      'CancelledTask',
      'Capability',
      'Client',
      'ClientCall',
      'ClientErrorCode',
      'ClientOptions',
      'ClientTask',
      'CompletedTask',
      'ContentBlock',
      'DeferredRound',
      'DoneRound',
      'FailedTask',
      'FetchLike',
      'ForeignErrorCode',
      'FormAnswer',
      'FormQuestion',
      'FormSchema',
      'GetPromptResult',
      'HeadersOption',
      'InputResponses',
      'ListOptions',
      'LogEntry',
      'Logger',
      'PendingCall',
      'PendingPrompt',
      'PendingResource',
      'PendingTool',
      'ProgressUpdate',
      'Prompt',
      'PromptCall',
      'RallyErrorCode',
      'ReadResourceResult',
      'Resource',
      'ResourceCall',
      'ResourceTemplate',
      'ResultOf',
      'Root',
      'RootsQuestion',
      'SampleAnswerer',
      'SampleQuestion',
      'SavedTask',
      'ServerAddress',
      'ServerChange',
      'ServerCommand',
      'ServerInfo',
      'ServerQuestion',
      'StartedCall',
      'Subscription',
      'TaskOptions',
      'TaskRound',
      'TaskState',
      'TaskStatus',
      'Tool',
      'ToolCall',
      'VisitAnswer',
      'VisitQuestion',
      'WorkingTask',
    ],
  },
  {
    path: './bearer',
    module: bearer,
    values: ['bearer'],
    types: ['BearerAlgorithm', 'BearerOptions', 'Jwks', 'KeyFunction', 'ResourceMetadata'],
  },
  {
    path: './sqlite',
    module: sqlite,
    values: ['sqlite'],
    types: ['SqliteOptions'],
  },
  {
    path: './postgres',
    module: postgres,
    values: ['postgres'],
    types: ['ConnectionLike', 'PoolLike', 'PostgresOptions', 'QueryLike', 'RowsLike'],
  },
  {
    path: './testing',
    module: testing,
    values: ['ReplayMismatch', 'accept', 'cancel', 'decline', 'harsh', 'madeUp', 'straight'],
    types: ['Answerer', 'AskedQuestion', 'Handler', 'HarshOptions', 'Report', 'RunOptions'],
  },
]

test('the entries of the package are these', async () => {
  const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { exports: object }
  expect(Object.keys(exports)).toEqual([...entries.map(({ path }) => path), './package.json'])
})

test.each(entries)('$path exports these values', ({ module, values }) => {
  expect(Object.keys(module).toSorted()).toEqual(values)
})

test.each(entries)('$path exports these types', async ({ path, values, types }) => {
  const source = await readFile(join(ROOT, 'src', path === '.' ? 'index.ts' : `${path}.ts`), 'utf8')
  const names = exportedNames(source)
  expect(names.filter((name) => !values.includes(name)).toSorted()).toEqual(types)
})

/** An entry is a list of names and nothing else, so that its text tells what it exports. */
function exportedNames(source: string): string[] {
  const EXPORT = /^export (?:type )?\{([^}]*)\} from '[^']+'$/gm
  expect(
    source
      .replaceAll(EXPORT, '')
      .replaceAll(/^\/\/.*$/gm, '')
      .trim(),
  ).toBe('')
  return [...source.matchAll(EXPORT)].flatMap(([, names = '']) =>
    names
      .split(',')
      .map((name) => name.replace(/^\s*type\s/, '').trim())
      .filter((name) => name !== ''),
  )
}
