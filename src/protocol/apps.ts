// Names of MCP Apps: the extension, and what Rally adds to an app that asks in a page of the client's host.

/** The extension as clients declare it, and the type of its pages. */
export const APPS_EXTENSION = 'io.modelcontextprotocol/ui'
export const PAGE_TYPE = 'text/html;profile=mcp-app'
export const PAGE_URI = 'ui://rally/ask'

/** The tool of the page, which the host keeps from the model. */
export const ANSWER_TOOL = 'rally_answer'
/** The tool with which the model waits for the result. */
export const RESULT_TOOL = 'rally_result'
