// Every code that an error of Rally has: what it means, and what to do. One union per room, and one of them all.
// A code is stable; a message is for people and may change. The codes of `FlowErrorCode`, DECLINED and VERSION_CHANGED
// also go to clients, as `data.code` of a JSON-RPC error.

/** Any code of a `RallyError`. Switch on it. */
export type RallyErrorCode =
  | ProtocolErrorCode
  | SetupErrorCode
  | SchemaErrorCode
  | FlowErrorCode
  | HandlerErrorCode
  | StateErrorCode
  | EventErrorCode
  | StoreErrorCode
  | OperationsErrorCode
  | AuthErrorCode
  | LegacyErrorCode
  | ClientErrorCode
  | TestingErrorCode

/** Codes of errors about messages. */
export type ProtocolErrorCode =
  /** A JSON-RPC error; `rpcCode` and `data` say which. A server sent it, or a handler threw it to end its call. */
  | 'PROTOCOL'
  /** A value has no form in JSON, such as a function, NaN or a cycle. Return or record plain data. */
  | 'NOT_JSON'
  /** A value is nested too deep. Make it flatter. */
  | 'TOO_DEEP'

/** Something is wrong in how the app is built. Thrown where the wrong call is made: change that line. */
export type SetupErrorCode =
  /** An option is missing, has a value that cannot be used, or conflicts with another one. The message names it. */
  | 'OPTION_INVALID'
  /** A secret in `keys` is missing, too short or there twice. Make one with `node -p "crypto.randomBytes(32).toString('base64url')"`. */
  | 'SECRET_INVALID'
  /** `app.tool()`: the name, the options or the handler cannot be used. */
  | 'TOOL_INVALID'
  /** `app.prompt()`: the name, the options, the handler or an argument cannot be used. */
  | 'PROMPT_INVALID'
  /** `app.resource()` or `app.resourceTemplate()`: the URI, the template, the options or the reader cannot be used. */
  | 'RESOURCE_INVALID'
  /** `app.method()`: the name, the options or the handler cannot be used, or the handler returned something that is not an object. */
  | 'METHOD_INVALID'
  /** `app.skill()` or `skillFolder()`: the path, the frontmatter or a file cannot be used. */
  | 'SKILL_INVALID'
  /** The handler is not a function, or its `timeoutMs` or `scopes` cannot be used. */
  | 'HANDLER_INVALID'
  /** `app.use()` got no function, or a middleware did not call `next()` once and gave no answer. */
  | 'MIDDLEWARE_INVALID'
  /** `complete` names an argument that the prompt or template does not have. */
  | 'COMPLETION_INVALID'
  /** A resolver's name cannot be used, or declared needs contain a cycle, a conflict or a wrong value. */
  | 'RESOLVER_INVALID'
  /** A tool, prompt, resource or template with this name exists already. Choose another name. */
  | 'NAME_TAKEN'
  /** The tool always runs as a task or must detach, and the app has no store. Pass `rally({ store })`. */
  | 'STORE_REQUIRED'
  /** The server would listen on the network without naming its hosts. Pass `allowedHosts`. */
  | 'ALLOWED_HOSTS_REQUIRED'
  /** The app was closed and cannot be served again. Create a new one. */
  | 'APP_CLOSED'

/** Codes of errors about schemas and forms. */
export type SchemaErrorCode =
  /** The schema cannot be used: it has no JSON Schema, is too large or too deep, or uses an unknown dialect. */
  | 'SCHEMA_INVALID'
  /** The schema is valid, but a form cannot show it. Use flat fields: strings, numbers, booleans and choices. */
  | 'FORM_INVALID'
  /** The arguments of the call do not match the schema of the tool or prompt. The message names each of them. */
  | 'ARGUMENTS_INVALID'

/** The handler broke a rule of flows, or the flow met a limit. The pass has failed, even if the handler caught the error. */
export type FlowErrorCode =
  /** A key is empty, too long, or contains a character that is not allowed. */
  | 'KEY_INVALID'
  /** Two calls of one flow have the same key. Give each its own; in a loop, put the index into it. */
  | 'KEY_REUSED'
  /** A key was recorded for one kind of call and is now used for another. Choose a new key, or raise `version`. */
  | 'KEY_KIND'
  /** The handler called `io.detach({ required: true })`, and the app has no store. Pass `rally({ store })`. */
  | 'STORE_REQUIRED'
  /** The handler called `io.detach({ required: true })`, and can never become a task: it is a prompt or a resource, or a tool with `task: 'never'`. */
  | 'TASK_NEVER'
  /** `io` was called inside a step. Ask before the step, or use `io.scope`. */
  | 'NESTED_CALL'
  /** An `io` call failed, and the handler did not await it. Add `await`. Strict mode only. */
  | 'NOT_AWAITED'
  /** A step was recorded, and the handler does not call it any more. Restore its key, or raise `version`. Strict mode only. */
  | 'STEP_GONE'
  /** The call used `io` in one round and returned `inputRequired` in another. Use one of the two throughout. */
  | 'MIXED_STYLES'
  /** The server shut down before the call was done, and nothing was recorded to resume from. Call again. */
  | 'INTERRUPTED'
  /** A question differs from the one that was answered, and a step ran after that answer. Derive questions from recorded values. */
  | 'QUESTION_CHANGED'
  /** The question cannot be asked as it is. The message says why. */
  | 'QUESTION_INVALID'
  /** A question was asked several times, and no answer was valid. */
  | 'ASKED_TOO_OFTEN'
  /** The journal has reached its limit. Record ids instead of documents, or group steps in a scope. */
  | 'JOURNAL_TOO_LARGE'
  /** The journal that came back cannot be read. It is damaged, or a newer version wrote it. */
  | 'JOURNAL_INVALID'
  /** A sleep or a deadline is not a number of milliseconds, or is not a valid Date. */
  | 'WAIT_INVALID'
  /** A sleep or a deadline is longer than what carries the flow can wait. Call `io.detach()` before it. */
  | 'WAIT_TOO_LONG'
  /** `io.event()` was called in a plain call. Use `task: 'always'`, or call `io.detach({ required: true })` first. */
  | 'EVENT_NEEDS_TASK'
  /** The schema of an event is too large, or `codec` is asynchronous. The message says which. */
  | 'EVENT_INVALID'
  /** A pass took longer than `timeoutMs`. Split the work into steps, or run it as a task. */
  | 'TIME_LIMIT'

/** What a handler may catch from a question or a step. */
export type HandlerErrorCode =
  /** A handler tells the model what went wrong. See `ToolError`. */
  | 'TOOL_ERROR'
  /** The user declined or cancelled a question. Catch `Declined` to continue without the answer. */
  | 'DECLINED'
  /** A question was not answered within its `withinMs`. Catch `Expired`, or pass `otherwise`. */
  | 'EXPIRED'
  /** A step or scope failed with an error that has no code of its own. See `StepFailed`. */
  | 'STEP_FAILED'
  /** A step threw `Fatal`: another attempt cannot help. */
  | 'FATAL'
  /** An attempt of a step took longer than its `timeoutMs`. Raise it, or add `retries`. */
  | 'STEP_TIMEOUT'

/** The sealed state that a client keeps between rounds. */
export type StateErrorCode =
  /** The state did not open: it was changed, has expired, or belongs to another call, caller or key. Start the call again. */
  | 'STATE_INVALID'
  /** The state would be larger than `maxStateBytes`. Record less in steps, or raise the limit. */
  | 'STATE_TOO_LARGE'
  /** The `codec` returned a value that is not a token. Its `seal` must return a string. */
  | 'CODEC_INVALID'

/** `app.signal()` did not take an event. */
export type EventErrorCode =
  /** The token is wrong or has expired, or its task has ended or was deleted. */
  | 'EVENT_REFUSED'
  /** The value does not match the schema of the event, or is too large. The event is still open. */
  | 'EVENT_MISMATCH'

/** Codes of errors about stores and tasks. */
export type StoreErrorCode =
  /** The store was closed, and was then used. */
  | 'STORE_CLOSED'
  /** Another process held a lock or a key for too long. Try again; find the process that is stuck. */
  | 'STORE_BUSY'
  /** The database refused or failed. `cause` is its error. */
  | 'STORE_FAILED'
  /** The driver package is not installed. Install `pg` or `libsql`. */
  | 'STORE_DRIVER_MISSING'
  /** The SQLite file cannot be opened or cannot be used there. Check the folder, its permissions and that it is a local disk. */
  | 'STORE_PATH'
  /** A newer version wrote the database, or its encoding is not UTF-8. Update mcp-rally, or use another database. */
  | 'STORE_SCHEMA'
  /** The SQLite file was deleted or replaced while the store had it open. Restore it, or restart the process. */
  | 'STORE_FILE_CHANGED'
  /** A connection pooler in transaction or statement mode is in front of PostgreSQL. Connect directly, or in session mode. */
  | 'STORE_POOLER'
  /** A text is longer than the store can hold. */
  | 'STORE_LIMIT'
  /** The journal to write is not the text of a JSON array. */
  | 'STORE_JOURNAL'
  /** A message is larger than the mailbox in memory, or the caller has used its part of the mailbox: `limits.maxWaitingBytes`. */
  | 'MAILBOX_FULL'

/** `app.tasks` and `rally tasks`. */
export type OperationsErrorCode =
  /** No task has this id, or it was deleted. */
  | 'TASK_UNKNOWN'
  /** The task has ended, so it cannot be cancelled or answered any more. */
  | 'TASK_ENDED'
  /** The task cannot be retried: it has not failed, its journal is not kept, it has no such key, or it was retried already. */
  | 'TASK_NOT_RETRYABLE'
  /** `before` is not a position that an earlier page returned. Pass `next` of that page, or a Date. */
  | 'TASK_CURSOR'
  /** A store of your own lacks the functions `find`, `inspect` or `remove`. */
  | 'STORE_UNSUPPORTED'

/** Codes of errors about who is calling. */
export type AuthErrorCode =
  /** The caller is refused; `status` is the HTTP status. See `AuthenticationError`. */
  | 'AUTHENTICATION_FAILED'
  /** `authenticate` returned a value that is not a caller. Return `{ principal, scopes? }`. */
  | 'CALLER_INVALID'

/** A call of a 2025-era client, whose questions need a live connection. */
export type LegacyErrorCode =
  /** The client answered a question with an error. */
  | 'ASK_FAILED'
  /** Too many questions wait for answers. Try again later. */
  | 'ASK_LIMIT'
  /** The client did not answer within `legacy.askMs`, or before the end of `legacy.callMs`. */
  | 'ASK_TIMEOUT'
  /** The call took longer than `legacy.callMs`. */
  | 'CALL_TIMEOUT'
  /** The revision of the client has no such question. */
  | 'MISSING_CAPABILITY'
  /** The client has no event stream, or lost it before it answered. It must accept text/event-stream, and read it. */
  | 'NO_STREAM'
  /** Events were sent after the last one of their channel. */
  | 'CHANNEL_CLOSED'
  /** The call returned `inputRequired` too often. Ask through `io` instead. */
  | 'TOO_MANY_ROUNDS'
  /** The server shut down before the call was done. Call again. */
  | 'INTERRUPTED'

/** Something failed at the client. What the server reports is a `ProtocolError`. */
export type ClientErrorCode =
  /** An option or argument cannot be used. The message names it and says what it must be. */
  | 'OPTION_INVALID'
  /** The server took longer than `timeoutMs`, or the task longer than `taskMs`; the user's time is not counted. `pending` or `task` resumes it. */
  | 'TIMEOUT'
  /** The caller's signal was aborted. */
  | 'ABORTED'
  /** The client was closed. Call `connect()` again. */
  | 'CLOSED'
  /** The server could not be reached. Nothing was sent: it is safe to try again. */
  | 'CONNECTION'
  /** The server's program could not be started, or stopped before it answered. Check `command`, `args` and `cwd`. */
  | 'COMMAND'
  /** The server did nothing with the request: it is overloaded, or its store is away. Try again after `retryAfterMs`. */
  | 'UNAVAILABLE'
  /** The response was lost: the server may or may not have done what was asked. Check before you call again, or resume `pending`. */
  | 'LOST'
  /** The server refused the caller (HTTP 401 or 403). `challenge` says what it wants. */
  | 'UNAUTHORIZED'
  /** The login that the server wants failed, or the user declined it. The message says at which step. */
  | 'LOGIN_FAILED'
  /** The server answered with another HTTP status that is not a response. Check the address; `status` is the status. */
  | 'HTTP_STATUS'
  /** The server's response does not follow the protocol. Report it to the author of the server. */
  | 'BAD_RESPONSE'
  /** The response is larger than `maxResponseBytes`. Raise it to accept the response. */
  | 'RESPONSE_TOO_LARGE'
  /** Client and server have no revision of the protocol in common. Update one of them, or pass another `revision`. */
  | 'REVISION'
  /** The server asked in more than `maxRounds` rounds. Raise it, or resume `pending`. */
  | 'TOO_MANY_ROUNDS'
  /** No instance of the server has the version of the tool that recorded this call. Resume `pending` later, or call again. */
  | 'VERSION_CHANGED'
  /** The server's `requestState` is larger than `maxStateBytes`. Raise it to carry the state. */
  | 'STATE_TOO_LARGE'
  /** The server asks something that no client should answer, such as a visit to a file: URL. Report it to the author of the server. */
  | 'QUESTION_INVALID'
  /** The server asks something, and the client has no function that answers it. Pass the one that the message names, or answer `pending` by hand. */
  | 'NO_ANSWERER'
  /** The answer does not match the question. The message names the fields. Answer again with `pending`. */
  | 'ANSWER_INVALID'
  /** The structured result does not match the output schema of the tool. The call has run. Report it to the author of the server. */
  | 'RESULT_INVALID'
  /** The definition of the tool is not valid, and clients must not call it. Report it to the author of the server. */
  | 'TOOL_INVALID'
  /** `client.tools`: the tool ran and failed. The message has its text, and `result` the whole result. */
  | 'TOOL_FAILED'
  /** A file of a skill is not the one that the entry of the skill describes. Do not use it; report it to the author of the server. */
  | 'SKILL_UNVERIFIED'
  /** The saved pending call is damaged, or was saved under another revision. The message says which. */
  | 'PENDING_INVALID'
  /** The server uses an older revision, in which a call cannot be saved. Pass the functions that answer its questions. */
  | 'NOT_RESUMABLE'
  /** The task was cancelled. */
  | 'TASK_CANCELLED'
  /** The server does not know the task, or has deleted it. Call the tool again. */
  | 'TASK_GONE'
  /** The saved task is damaged. Pass what `JSON.parse` returns for the saved text, or the task id. */
  | 'TASK_INVALID'
  /** The server uses an older revision, and has no tasks for this client. Use `callTool()`. */
  | 'NO_TASKS'

/** mcp-rally/testing. */
export type TestingErrorCode =
  /** The handler, run again, did something else than before. See `ReplayMismatch`. */
  | 'REPLAY_MISMATCH'
  /** The test has no valid answer for a question. Return one from `answer`. */
  | 'UNANSWERED'
  /** The flow was not done after `maxRounds` rounds. */
  | 'TOO_MANY_ROUNDS'
