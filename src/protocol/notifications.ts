// The notifications that belong to a request: progress, log messages, cancellation.
import type { JSONRPCNotification, RequestId } from './jsonrpc.ts'
import type { LoggingLevel, NotificationMeta, ProgressToken } from './meta.ts'

export interface ProgressNotification extends JSONRPCNotification<ProgressNotificationParams> {
  method: 'notifications/progress'
  params: ProgressNotificationParams
}

export interface ProgressNotificationParams {
  progressToken: ProgressToken
  /** Grows with every notification, also where the total is unknown. */
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
