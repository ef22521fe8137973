// mcp-rally: the app, its errors and its types. The hosts that need Node are in mcp-rally/node.
export { rally, type Rally, type RallyOptions, type RallyTasks } from './rally.ts'
export type { FetchHandler } from './hosts/fetch.ts'
export type { HttpOptions } from './hosts/http.ts'
export {
  AuthenticationError,
  type Authenticate,
  type AuthenticatedCaller,
  type HttpRequest,
} from './auth/authenticate.ts'
export { send, type SendOptions } from './hosts/memory.ts'
export type { App } from './server/app.ts'
export type { AppOptions } from './server/options.ts'
export type { Readiness, ReadinessOptions } from './server/readiness.ts'
export type { HandlerOptions } from './server/handler.ts'
export type { ToolHandler, ToolOptions, ToolTypes } from './server/tool.ts'
export type { ServerTypes } from './protocol/server-types.ts'
export type { ToolResult, ToolReturn } from './server/content.ts'
export type { MethodContext, MethodHandler, MethodOptions, MethodResult } from './server/own-method.ts'
export type { SkillFolder, SkillOptions } from './server/skill.ts'
export type { PromptHandler, PromptOptions, PromptResult, PromptReturn } from './server/prompt.ts'
export type {
  ResourceContent,
  ReadResult,
  ReadReturn,
  ResourceOptions,
  ResourceReader,
  TemplateOptions,
  TemplateReader,
} from './server/resource.ts'
export type { TemplateVariables } from './server/uri-template.ts'
export type { CompletionContext, CompletionSource, CompletionResult, CompletionFunction } from './server/completion.ts'
export type { Bus, ChangeEvent, ChangeNotifier } from './server/subscriptions.ts'
export type { ShedLoad } from './server/handover.ts'
export type { OptInRevision } from './protocol/revisions/rounds.ts'
export type { LegacyOptions } from './server/legacy.ts'
export type { LimitOptions } from './server/limits.ts'
export type { StoredEvent, Mailbox } from './store/mailbox.ts'
export type { Caller, CallerClaims, CallSource, ClientInfo } from './flow/caller.ts'
export type { ErrorContext, OnError } from './flow/failure-log.ts'
export type { Visible } from './server/visibility.ts'
export type { Middleware, MiddlewareCall, MiddlewareOutcome, MiddlewareResult } from './server/middleware.ts'
export type {
  AskEnd,
  FlowCarrier,
  FlowEnd,
  Observation,
  ObservedAsk,
  ObservedFlow,
  ObservedRound,
  ObservedStep,
  ObservedTask,
  ObservedWait,
  Observer,
  RoundEnd,
  StepEnd,
  TaskEnd,
  WaitEnd,
} from './flow/observer.ts'
export type { AskOptions, Asks, ChoiceOption, ElicitationAnswer, Io } from './flow/io.ts'
export type { OutsideEvent } from './flow/event.ts'
export type { NotJson, Recordable } from './flow/lossless.ts'
export type { RetryOptions } from './flow/retry.ts'
export type { LogLevel, StepContext, StepOptions } from './flow/step.ts'
export { elicit, inputRequired, roots, sample, visit } from './flow/by-hand.ts'
export type { InputRequired, InputRequiredOptions, RoundResponses } from './flow/by-hand.ts'
export { outcome, resolver } from './flow/resolver.ts'
export type {
  Requirement,
  Requirements,
  ResolverOutcome,
  ResolvedNeeds,
  Resolver,
  ResolverOptions,
} from './flow/resolver.ts'
export { MemoryStore, type MemoryStoreOptions } from './store/memory/store.ts'
export type { Store } from './store/store.ts'
export type {
  TaskPrecondition,
  ClaimedTask,
  ClaimRequest,
  TaskLease,
  TaskEvent,
  TaskGroup,
  NewTask,
  RenewedLease,
  TaskChange,
  TaskPosition,
  TaskRecord,
  TaskStatus,
  TaskStore,
  TaskUsage,
} from './store/tasks.ts'
export type { FoundTasks, InspectedTask, TaskQuery } from './store/tasks.ts'
export type {
  PayloadPlace,
  TaskDetails,
  TaskGetOptions,
  TaskList,
  TaskListOptions,
  TaskPruneOptions,
  TaskRetryOptions,
  TaskSummary,
} from './tasks/operations.ts'
export type { TaskOutcome } from './tasks/outcome.ts'
export type { TaskTimelineEntry } from './tasks/timeline.ts'
export type { AppsOptions } from './server/apps-options.ts'
export type { IdentifyVisitor, PageOptions, PageRequest, PageVisitor } from './server/page.ts'
export type { SignalOutcome, TaskConcurrency, TaskMode, TasksOptions, ToolTaskOptions } from './server/tasks.ts'
export { MemoryOnceStore } from './store/memory/once.ts'
export type { OnceClaim, OnceStore } from './store/once.ts'
export type { Capability, VisitOptions } from './flow/question.ts'
export { Declined, Expired, Fatal, FlowError, MissingCapability, StepFailed, ToolError } from './flow/errors.ts'
export { ProtocolError, RallyError, type ForeignErrorCode } from './protocol/errors.ts'
export { Unavailable, type RetryAdvice } from './protocol/unavailable.ts'
export type {
  AuthErrorCode,
  ClientErrorCode,
  EventErrorCode,
  FlowErrorCode,
  HandlerErrorCode,
  LegacyErrorCode,
  OperationsErrorCode,
  ProtocolErrorCode,
  RallyErrorCode,
  SchemaErrorCode,
  SetupErrorCode,
  StateErrorCode,
  StoreErrorCode,
  TestingErrorCode,
} from './protocol/error-codes.ts'
export type { LogFields, Logger, LoggerLevel } from './protocol/logger.ts'
export type { Schema } from './schema/standard.ts'
export type { ContentBlock, PromptMessage } from './protocol/messages.ts'
export type { StateCodec } from './seal/codec.ts'
export type { KeySecret } from './seal/keyring.ts'
