// mcp-rally: an app, its errors and its types. Hosts that need Node are in mcp-rally/node.
export { rally, type Rally, type RallyOptions } from './rally.ts'
export type { FetchHandler } from './hosts/fetch.ts'
export type { HttpOptions } from './hosts/http.ts'
export { Refused, type Authenticate, type Authenticated, type HttpRequest } from './auth/authenticate.ts'
export { send, type SendOptions } from './hosts/memory.ts'
export type { App, AppOptions } from './server/app.ts'
export type { HandlerOptions } from './server/handler.ts'
export type { ToolHandler, ToolOptions } from './server/tool.ts'
export type { ToolResult, ToolReturn } from './server/content.ts'
export type { PromptHandler, PromptOptions, PromptResult, PromptReturn } from './server/prompt.ts'
export type {
  Contents,
  ReadResult,
  ReadReturn,
  ResourceOptions,
  ResourceReader,
  TemplateOptions,
  TemplateReader,
} from './server/resource.ts'
export type { Variables } from './server/uri-template.ts'
export type { Complete, Completed, CompleteFunction } from './server/completion.ts'
export type { Bus, Change, Notify } from './server/subscriptions.ts'
export type { Shed } from './server/handover.ts'
export type { OptInRevision } from './protocol/revisions/opt-in.ts'
export type { LegacyOptions } from './server/legacy.ts'
export type { Letter, Mailbox } from './store/mailbox.ts'
export type { Asks, Choice, Elicited, Io } from './flow/io.ts'
export type { LogLevel, StepContext, StepOptions } from './flow/step.ts'
export { elicit, inputRequired, roots, sample, visit } from './flow/by-hand.ts'
export type { InputRequired, InputRequiredOptions, Responses } from './flow/by-hand.ts'
export { outcome, resolver } from './flow/resolver.ts'
export type { Need, Needs, Resolution, Resolved, Resolver, ResolverOptions } from './flow/resolver.ts'
export { MemoryStore, type MemoryStoreOptions } from './store/memory/store.ts'
export type {
  Belief,
  ClaimedTask,
  Held,
  News,
  NewTask,
  Standing,
  Store,
  TaskChange,
  TaskRecord,
  TaskStatus,
  TaskStore,
} from './store/store.ts'
export type { TaskMode, TasksOptions } from './server/tasks.ts'
export { MemoryOnceStore } from './store/memory/once.ts'
export type { Claim, OnceStore } from './store/once.ts'
export type { Capability, VisitOptions } from './flow/question.ts'
export { Declined, FlowError, MissingCapability, StepFailed, type FlowErrorCode } from './flow/errors.ts'
export { ProtocolError, RallyError } from './protocol/errors.ts'
export type { Logger } from './protocol/logger.ts'
export type { Schema } from './schema/standard.ts'
export type { ContentBlock, PromptMessage } from './protocol/messages.ts'
export type { Codec } from './seal/codec.ts'
export type { Secret } from './seal/keyring.ts'
