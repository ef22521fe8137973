// What travels in `_meta`: the version, the capabilities and the identities that 2026-07-28 repeats on every message.
import type { RequestId } from './jsonrpc.ts'
import type { ClientCapabilities, Implementation } from './peer.ts'

export const META_VERSION = 'io.modelcontextprotocol/protocolVersion'
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
export const META_CLIENT_INFO = 'io.modelcontextprotocol/clientInfo'
export const META_LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
export const META_SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

/** Names the task that a message belongs to. Only revisions with sessions have it. */
export const META_RELATED_TASK = 'io.modelcontextprotocol/related-task'

/** The extension by which a call becomes a task. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/** SEP-1685: what a server of the 2025 era has the client carry with a question, and echo with the answer. */
export const META_STATE = 'modelcontextprotocol.io/state/request/'

export interface Meta {
  [key: string]: unknown
}

export interface RequestMeta extends Meta {
  [META_VERSION]: string
  [META_CAPABILITIES]: ClientCapabilities
  [META_CLIENT_INFO]?: Implementation
  /** Without it the server sends no log notifications for this request. */
  [META_LOG_LEVEL]?: LoggingLevel
  /** With it the caller asks for progress notifications that carry it. */
  progressToken?: ProgressToken
}

export interface ResultMeta extends Meta {
  [META_SERVER_INFO]?: Implementation
}

export interface NotificationMeta extends Meta {
  [META_SUBSCRIPTION]?: RequestId
}

export type ProgressToken = string | number

/** From chatty to grave: a level asks for itself and everything after it. */
export const LOGGING_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const

export type LoggingLevel = (typeof LOGGING_LEVELS)[number]
