// Who the two sides of a connection say they are, and what they say they can do.

export interface Implementation {
  name: string
  version: string
  title?: string
  description?: string
  websiteUrl?: string
  icons?: Icon[]
}

export interface Icon {
  /** An `https:` or `data:` URI. */
  src: string
  mimeType?: string
  /** `48x48`, or `any` for a scalable picture. */
  sizes?: string[]
  theme?: 'light' | 'dark'
}

/** What the client can do for this one request; it says so on every request. */
export interface ClientCapabilities {
  elicitation?: { form?: JSONObject; url?: JSONObject }
  sampling?: { context?: JSONObject; tools?: JSONObject }
  roots?: JSONObject
  experimental?: Record<string, JSONObject>
  extensions?: Record<string, JSONObject>
}

export interface ServerCapabilities {
  tools?: { listChanged?: boolean }
  prompts?: { listChanged?: boolean }
  resources?: { listChanged?: boolean; subscribe?: boolean }
  completions?: JSONObject
  logging?: JSONObject
  experimental?: Record<string, JSONObject>
  extensions?: Record<string, JSONObject>
}

export type JSONValue = string | number | boolean | null | JSONObject | JSONValue[]

export interface JSONObject {
  [key: string]: JSONValue
}
