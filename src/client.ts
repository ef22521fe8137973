// mcp-rally/client: calls the tools, prompts and resources of a server, however many rounds it takes.
export { connect, type ServerAddress } from './client/connect.ts'
export type { Client, Started } from './client/client.ts'
export { ClientError, type ClientErrorCode } from './client/errors.ts'
export type { Command } from './client/transports/child.ts'
export type { AppLike } from './client/transports/memory.ts'
export type {
  CallOptions,
  ClientOptions,
  FetchLike,
  HeadersOption,
  ListOptions,
  LogEntry,
  Progress,
  TaskOptions,
} from './client/options.ts'
export type { AnswerContext, Answerers, FormAnswer, Sampler, VisitAnswer } from './client/answers/answerers.ts'
export type { Capability } from './client/capabilities.ts'
export type { Call, PromptCall, ResourceCall, ResultOf, ToolCall } from './client/call.ts'
export type { FormQuestion, Question, RootsQuestion, SampleQuestion, VisitQuestion } from './client/answers/question.ts'
export type { AskingRound, DeferredRound, DoneRound, Round, TaskRound } from './client/flow.ts'
export type { Pending, PendingPrompt, PendingResource, PendingTool } from './client/pending.ts'
export type { Task } from './client/tasks/task.ts'
export type { SavedTask } from './client/tasks/saved.ts'
export type {
  AskingTask,
  CancelledTask,
  CompletedTask,
  FailedTask,
  TaskState,
  TaskStatus,
  WorkingTask,
} from './client/tasks/state.ts'
export type { Change, Subscribed } from './client/subscription.ts'
export type { ServerInfo } from './client/discovery.ts'
export { ProtocolError, RallyError } from './protocol/errors.ts'
export type { Logger } from './protocol/logger.ts'
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
