// mcp-rally/client: calls the tools, prompts and resources of a server, in as many rounds as it takes.
export { connect, type ServerAddress } from './client/connect.ts'
export { login, logout, type LoginOptions } from './client/login.ts'
export type { Client, StartedCall } from './client/client.ts'
export type { TypedResult, TypedTool, TypedTools } from './client/typed-tools.ts'
export type { ServerTypes } from './protocol/server-types.ts'
export { ClientError } from './client/errors.ts'
export type { ServerCommand } from './client/transports/child.ts'
export type { AppLike } from './client/transports/memory.ts'
export type {
  CallOptions,
  ClientOptions,
  FetchLike,
  HeadersOption,
  ListOptions,
  LogEntry,
  ProgressUpdate,
  ReadOptions,
  RequestOptions,
  TaskOptions,
} from './client/options.ts'
export type {
  AuthorizeContext,
  EnterpriseGrant,
  OAuthClient,
  OAuthOptions,
  OnAuthorize,
  SavedClient,
  SavedLogin,
  SigningKey,
  TokenStore,
} from './client/oauth/options.ts'
export type { AnswerContext, Answerers, FormAnswer, SampleAnswerer, VisitAnswer } from './client/answers/answerers.ts'
export type { Capability } from './client/capabilities.ts'
export type { ClientCall, PromptCall, ResourceCall, ResultOf, ToolCall } from './client/call.ts'
export type {
  FormQuestion,
  ServerQuestion,
  RootsQuestion,
  SampleQuestion,
  VisitQuestion,
} from './client/answers/question.ts'
export type { AskingRound, DeferredRound, DoneRound, CallRound, TaskRound } from './client/flow.ts'
export type { PendingCall, PendingPrompt, PendingResource, PendingTool, SavedTask } from './client/saved.ts'
export type { ClientTask } from './client/tasks/task.ts'
export type {
  AskingTask,
  CancelledTask,
  CompletedTask,
  FailedTask,
  TaskState,
  TaskStatus,
  WorkingTask,
} from './client/tasks/state.ts'
export type { ServerChange, Subscription } from './client/subscription.ts'
export type { SkillFile } from './client/skills.ts'
export type { Skill, SkillFrontmatter, SkillResource } from './protocol/skills.ts'
export type { ServerInfo } from './client/discovery.ts'
export type {
  ClientObserver,
  ObservedRequest,
  ObservedServer,
  RequestEnd,
  RequestObservation,
} from './client/observer.ts'
export { ProtocolError, RallyError, type ForeignErrorCode } from './protocol/errors.ts'
export type { ClientErrorCode, RallyErrorCode } from './protocol/error-codes.ts'
export type { LogFields, Logger } from './protocol/logger.ts'
export type {
  CallToolResult,
  ContentBlock,
  FormSchema,
  GetPromptResult,
  InputResponses,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Root,
  Tool,
} from './protocol/messages.ts'
