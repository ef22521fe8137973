// The long-lived stream of change notifications that `subscriptions/listen` opens.
import type { JSONRPCNotification, RequestId } from './jsonrpc.ts'
import type { META_SUBSCRIPTION, NotificationMeta, RequestMeta, ResultMeta } from './meta.ts'

/** Each kind is opt-in: what is not named is not sent. */
export interface SubscriptionFilter {
  toolsListChanged?: boolean
  promptsListChanged?: boolean
  resourcesListChanged?: boolean
  /** URIs whose updates are wanted. */
  resourceSubscriptions?: string[]
}

export interface SubscriptionsListenRequestParams {
  _meta: RequestMeta
  notifications: SubscriptionFilter
}

/** The server ended the subscription in good order. */
export interface SubscriptionsListenResult {
  resultType: 'complete'
  _meta: ResultMeta & { [META_SUBSCRIPTION]: RequestId }
}

export interface SubscriptionsAcknowledgedNotification extends JSONRPCNotification<SubscriptionsAcknowledgedNotificationParams> {
  method: 'notifications/subscriptions/acknowledged'
  params: SubscriptionsAcknowledgedNotificationParams
}

export interface SubscriptionsAcknowledgedNotificationParams {
  /** What of the request the server honours. */
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
