// The notifications of a request (progress, logs, cancellation), and those that subscriptions/listen asks for.
import type { LoggingLevel } from '../logger.ts'
import type { META_SUBSCRIPTION } from '../revisions/2026-07-28.ts'
import type { JSONRPCNotification, RequestId } from './jsonrpc.ts'
import type { NotificationMeta, ProgressToken, RequestMeta, ResultMeta } from './meta.ts'

export interface ProgressNotification extends JSONRPCNotification<ProgressNotificationParams> {
  method: 'notifications/progress'
  params: ProgressNotificationParams
}

export interface ProgressNotificationParams {
  progressToken: ProgressToken
  /** Grows with every notification, even if the total is unknown. */
  progress: number
  total?: number
  message?: string
  _meta?: NotificationMeta
}

export interface LoggingMessageNotification extends JSONRPCNotification<LoggingMessageNotificationParams> {
  method: 'notifications/message'
  params: LoggingMessageNotificationParams
}

export interface LoggingMessageNotificationParams {
  level: LoggingLevel
  logger?: string
  data: unknown
  _meta?: NotificationMeta
}

export interface CancelledNotification extends JSONRPCNotification<CancelledNotificationParams> {
  method: 'notifications/cancelled'
  params: CancelledNotificationParams
}

export interface CancelledNotificationParams {
  requestId: RequestId
  reason?: string
  _meta?: NotificationMeta
}

/** Each kind is opt-in: the server sends only what is named. */
export interface SubscriptionFilter {
  toolsListChanged?: boolean
  promptsListChanged?: boolean
  resourcesListChanged?: boolean
  /** The URIs of resources to report updates of. */
  resourceSubscriptions?: string[]
}

export interface SubscriptionsListenRequestParams {
  _meta: RequestMeta
  notifications: SubscriptionFilter
}

/** Sent when the server ends the subscription properly. */
export interface SubscriptionsListenResult {
  resultType: 'complete'
  _meta: ResultMeta & { [META_SUBSCRIPTION]: RequestId }
}

export interface SubscriptionsAcknowledgedNotification extends JSONRPCNotification<SubscriptionsAcknowledgedNotificationParams> {
  method: 'notifications/subscriptions/acknowledged'
  params: SubscriptionsAcknowledgedNotificationParams
}

export interface SubscriptionsAcknowledgedNotificationParams {
  /** The part of the request that the server accepted. */
  notifications: SubscriptionFilter
  _meta?: NotificationMeta
}

export interface ListChangedNotificationParams {
  _meta?: NotificationMeta
}

export interface ToolListChangedNotification extends JSONRPCNotification<ListChangedNotificationParams> {
  method: 'notifications/tools/list_changed'
  params?: ListChangedNotificationParams
}

export interface PromptListChangedNotification extends JSONRPCNotification<ListChangedNotificationParams> {
  method: 'notifications/prompts/list_changed'
  params?: ListChangedNotificationParams
}

export interface ResourceListChangedNotification extends JSONRPCNotification<ListChangedNotificationParams> {
  method: 'notifications/resources/list_changed'
  params?: ListChangedNotificationParams
}

export interface ResourceUpdatedNotification extends JSONRPCNotification<ResourceUpdatedNotificationParams> {
  method: 'notifications/resources/updated'
  params: ResourceUpdatedNotificationParams
}

export interface ResourceUpdatedNotificationParams {
  uri: string
  _meta?: NotificationMeta
}
