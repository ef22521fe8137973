// Holds our hand-written types against the official ones: their property names against the published schema, and what
// may be in them against the types of the official package, as JSON carries both.
import type * as official from '@modelcontextprotocol/server'
import { describe, expectTypeOf, test } from 'vitest'
import spec from '../../test/spec/2026-07-28/schema.json' with { type: 'json' }
import type * as ours from './messages.ts'
import type * as revision from './revisions/2026-07-28.ts'

/** Every definition of the schema that we have a type for. */
interface Typed {
  Annotations: ours.Annotations
  AudioContent: ours.AudioContent
  BlobResourceContents: ours.BlobResourceContents
  BooleanSchema: ours.BooleanSchema
  CallToolRequestParams: ours.CallToolRequestParams
  CallToolResult: ours.CallToolResult
  CancelledNotification: ours.CancelledNotification
  CancelledNotificationParams: ours.CancelledNotificationParams
  ClientCapabilities: ours.ClientCapabilities
  CompleteRequestParams: ours.CompleteRequestParams
  CompleteResult: ours.CompleteResult
  CreateMessageRequest: ours.CreateMessageRequest
  CreateMessageRequestParams: ours.CreateMessageRequestParams
  CreateMessageResult: ours.CreateMessageResult
  DiscoverResult: ours.DiscoverResult
  ElicitRequest: ours.ElicitRequest
  ElicitRequestFormParams: ours.ElicitRequestFormParams
  ElicitRequestURLParams: ours.ElicitRequestURLParams
  ElicitResult: ours.ElicitResult
  EmbeddedResource: ours.EmbeddedResource
  Error: ours.JSONRPCErrorObject
  GetPromptRequestParams: ours.GetPromptRequestParams
  GetPromptResult: ours.GetPromptResult
  Icon: ours.Icon
  ImageContent: ours.ImageContent
  Implementation: ours.Implementation
  InputRequiredResult: ours.InputRequiredResult
  InputResponseRequestParams: ours.RoundParams
  JSONRPCErrorResponse: ours.JSONRPCErrorResponse
  JSONRPCNotification: ours.JSONRPCNotification
  JSONRPCRequest: ours.JSONRPCRequest
  JSONRPCResultResponse: ours.JSONRPCResultResponse
  LegacyTitledEnumSchema: ours.LegacyTitledEnumSchema
  ListPromptsResult: ours.ListPromptsResult
  ListResourceTemplatesResult: ours.ListResourceTemplatesResult
  ListResourcesResult: ours.ListResourcesResult
  ListRootsRequest: ours.ListRootsRequest
  ListRootsResult: ours.ListRootsResult
  ListToolsResult: ours.ListToolsResult
  LoggingMessageNotification: ours.LoggingMessageNotification
  LoggingMessageNotificationParams: ours.LoggingMessageNotificationParams
  ModelHint: ours.ModelHint
  ModelPreferences: ours.ModelPreferences
  NotificationMetaObject: ours.NotificationMeta
  NumberSchema: ours.NumberSchema
  PaginatedRequestParams: ours.ListRequestParams
  ProgressNotification: ours.ProgressNotification
  ProgressNotificationParams: ours.ProgressNotificationParams
  Prompt: ours.Prompt
  PromptArgument: ours.PromptArgument
  PromptListChangedNotification: ours.PromptListChangedNotification
  PromptMessage: ours.PromptMessage
  PromptReference: ours.PromptReference
  ReadResourceRequestParams: ours.ReadResourceRequestParams
  ReadResourceResult: ours.ReadResourceResult
  RequestMetaObject: ours.RequestMeta
  RequestParams: ours.DiscoverRequestParams
  Resource: ours.Resource
  ResourceLink: ours.ResourceLink
  ResourceListChangedNotification: ours.ResourceListChangedNotification
  ResourceTemplate: ours.ResourceTemplate
  ResourceTemplateReference: ours.ResourceTemplateReference
  ResourceUpdatedNotification: ours.ResourceUpdatedNotification
  ResourceUpdatedNotificationParams: ours.ResourceUpdatedNotificationParams
  ResultMetaObject: ours.ResultMeta
  Root: ours.Root
  SamplingMessage: ours.SamplingMessage
  ServerCapabilities: ours.ServerCapabilities
  SubscriptionFilter: ours.SubscriptionFilter
  SubscriptionsAcknowledgedNotification: ours.SubscriptionsAcknowledgedNotification
  SubscriptionsAcknowledgedNotificationParams: ours.SubscriptionsAcknowledgedNotificationParams
  SubscriptionsListenRequestParams: ours.SubscriptionsListenRequestParams
  SubscriptionsListenResult: ours.SubscriptionsListenResult
  StringSchema: ours.StringSchema
  TextContent: ours.TextContent
  TextResourceContents: ours.TextResourceContents
  TitledMultiSelectEnumSchema: ours.TitledMultiSelectEnumSchema
  TitledSingleSelectEnumSchema: ours.TitledSingleSelectEnumSchema
  Tool: ours.Tool
  ToolAnnotations: ours.ToolAnnotations
  ToolChoice: ours.ToolChoice
  ToolListChangedNotification: ours.ToolListChangedNotification
  ToolResultContent: ours.ToolResultContent
  ToolUseContent: ours.ToolUseContent
  UntitledMultiSelectEnumSchema: ours.UntitledMultiSelectEnumSchema
  UntitledSingleSelectEnumSchema: ours.UntitledSingleSelectEnumSchema
}

type Definitions = typeof spec.$defs
type Names<T> = keyof { [K in keyof T as string extends K ? never : K]: T[K] }
type SpecNames<D extends keyof Typed> = Definitions[D] extends { properties: infer P } ? keyof P : never

/** The names that only one of the two has. */
type Differing = {
  [D in keyof Typed]: `${D}.${Exclude<Names<Typed[D]>, SpecNames<D>> | Exclude<SpecNames<D>, Names<Typed[D]>>}`
}[keyof Typed]

/** No property is there with `undefined`, which zod's types allow, and an interface is a plain object. */
type Wire<T> = T extends object
  ? [T, Names<T>] extends [ours.JSONObject, never]
    ? T
    : { [K in keyof T]: Wire<Exclude<T[K], Absent<T, K>>> }
  : T
type Absent<T, K extends keyof T> = object extends Pick<T, K> ? undefined : never

/** Whether a value of the one may go wherever the other is expected. */
type Fits<From, To> = [Wire<From>] extends [Wire<To>] ? true : false
type Same<A, B> = [Fits<A, B>, Fits<B, A>]

/** Without what the official types leave to their protocol layer: what kind of result it is, and how to cache it. */
type Bare<T> = { [K in keyof T as K extends 'resultType' | keyof ours.CacheHints ? never : K]: T[K] }

describe('the comparison', () => {
  test('notices a missing property, another type and another optionality', () => {
    expectTypeOf<Same<{ a: string }, { a: string; b: string }>>().toEqualTypeOf<[false, true]>()
    expectTypeOf<Same<{ a: string }, { a: number }>>().toEqualTypeOf<[false, false]>()
    expectTypeOf<Same<{ a: string }, { a?: string }>>().toEqualTypeOf<[true, false]>()
    expectTypeOf<Same<{ a?: string | undefined }, { a?: string }>>().toEqualTypeOf<[true, true]>()
  })

  test('reads the property names of the schema', () => {
    expectTypeOf<SpecNames<'Root'>>().toEqualTypeOf<'uri' | 'name' | '_meta'>()
  })
})

test('our types have the property names of the published schema, no more and no less', () => {
  expectTypeOf<never>().toEqualTypeOf<Differing>()
})

describe('the official package and ours take the same for', () => {
  test('the envelope', () => {
    expectTypeOf<Same<ours.RequestId, official.RequestId>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<ours.JSONRPCErrorResponse, official.JSONRPCErrorResponse>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Fits<official.JSONRPCMessage, ours.JSONRPCMessage>>().toEqualTypeOf<true>()
  })

  test('who the two sides are and what they can do', () => {
    expectTypeOf<Same<ours.Implementation, official.Implementation>>().toEqualTypeOf<[true, true]>()
    // Their type of `elicitation` goes round in circles; its names are compared with the schema instead.
    type Apart<T> = Omit<T, 'elicitation'>
    type Elicitation = Definitions['ClientCapabilities']['properties']['elicitation']['properties']
    expectTypeOf<Same<Apart<ours.ClientCapabilities>, Apart<official.ClientCapabilities>>>().toEqualTypeOf<
      [true, true]
    >()
    expectTypeOf<keyof NonNullable<ours.ClientCapabilities['elicitation']>>().toEqualTypeOf<keyof Elicitation>()
    expectTypeOf<Same<ours.ServerCapabilities, official.ServerCapabilities>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<Bare<ours.DiscoverResult>, official.DiscoverResult>>().toEqualTypeOf<[true, true]>()
  })

  test('content', () => {
    expectTypeOf<Same<ours.ContentBlock, official.ContentBlock>>().toEqualTypeOf<[true, true]>()
  })

  test('forms', () => {
    type OursField = ours.PrimitiveSchemaDefinition
    expectTypeOf<Same<OursField, official.PrimitiveSchemaDefinition>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<ours.ElicitRequestFormParams, official.ElicitRequestFormParams>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<ours.ElicitResult, official.ElicitResult>>().toEqualTypeOf<[true, true]>()
  })

  test('sampling', () => {
    expectTypeOf<Same<ours.CreateMessageRequest, official.CreateMessageRequest>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<ours.CreateMessageResult, official.CreateMessageResultWithTools>>().toEqualTypeOf<[true, true]>()
  })

  test('roots', () => {
    expectTypeOf<Same<ours.ListRootsRequest, official.ListRootsRequest>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<ours.ListRootsResult, official.ListRootsResult>>().toEqualTypeOf<[true, true]>()
  })

  test('tools', () => {
    expectTypeOf<Same<ours.Tool, official.Tool>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<Bare<ours.CallToolResult>, official.CallToolResult>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<Bare<ours.ListToolsResult>, official.ListToolsResult>>().toEqualTypeOf<[true, true]>()
  })

  test('prompts', () => {
    expectTypeOf<Same<ours.Prompt, official.Prompt>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<ours.PromptMessage, official.PromptMessage>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<Bare<ours.GetPromptResult>, official.GetPromptResult>>().toEqualTypeOf<[true, true]>()
  })

  test('resources', () => {
    expectTypeOf<Same<ours.Resource, official.Resource>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<ours.ResourceTemplate, official.ResourceTemplateType>>().toEqualTypeOf<[true, true]>()
    expectTypeOf<Same<Bare<ours.ReadResourceResult>, official.ReadResourceResult>>().toEqualTypeOf<[true, true]>()
  })

  test('completion', () => {
    expectTypeOf<Same<Bare<ours.CompleteResult>, official.CompleteResult>>().toEqualTypeOf<[true, true]>()
  })

  test('notifications', () => {
    expectTypeOf<Same<ours.ProgressNotificationParams, official.ProgressNotificationParams>>().toEqualTypeOf<
      [true, true]
    >()
    expectTypeOf<
      Same<ours.LoggingMessageNotificationParams, official.LoggingMessageNotificationParams>
    >().toEqualTypeOf<[true, true]>()
  })

  test('rounds that need input', () => {
    expectTypeOf<Fits<official.InputRequests, ours.InputRequests>>().toEqualTypeOf<true>()
    expectTypeOf<Fits<official.InputResponses, ours.InputResponses>>().toEqualTypeOf<true>()
    expectTypeOf<Fits<official.InputRequiredResult, ours.InputRequiredResult>>().toEqualTypeOf<true>()
  })
})

describe('the official package serves older revisions with the same types, and so differs in that', () => {
  test('a URL elicitation has an id there', () => {
    type Older = Omit<official.ElicitRequestURLParams, 'elicitationId'>
    expectTypeOf<Same<ours.ElicitRequestURLParams, Older>>().toEqualTypeOf<[true, true]>()
  })

  test('a cancellation may lack the id of its request there', () => {
    type Theirs = official.CancelledNotificationParams
    expectTypeOf<Same<ours.CancelledNotificationParams, Theirs>>().toEqualTypeOf<[true, false]>()
  })

  test('a request may lack its _meta', () => {
    expectTypeOf<Fits<ours.CallToolRequestParams, official.CallToolRequestParams>>().toEqualTypeOf<true>()
    type Rest<T> = Omit<T, '_meta'>
    expectTypeOf<Fits<Rest<official.CallToolRequestParams>, Rest<ours.CallToolRequestParams>>>().toEqualTypeOf<true>()
  })
})

describe('the meta keys', () => {
  test('are the official ones', () => {
    expectTypeOf<typeof revision.META_VERSION>().toEqualTypeOf<typeof official.PROTOCOL_VERSION_META_KEY>()
    expectTypeOf<typeof revision.META_CAPABILITIES>().toEqualTypeOf<typeof official.CLIENT_CAPABILITIES_META_KEY>()
    expectTypeOf<typeof revision.META_CLIENT_INFO>().toEqualTypeOf<typeof official.CLIENT_INFO_META_KEY>()
    expectTypeOf<typeof revision.META_LOG_LEVEL>().toEqualTypeOf<typeof official.LOG_LEVEL_META_KEY>()
    expectTypeOf<typeof revision.META_SERVER_INFO>().toEqualTypeOf<typeof official.SERVER_INFO_META_KEY>()
  })
})
