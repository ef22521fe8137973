// The JSON-RPC 2.0 envelope of every message.

export type RequestId = string | number

/** `Params` is the type that the sender knows. A received message has unchecked params. */
export interface JSONRPCRequest<Params extends object = Record<string, unknown>> {
  jsonrpc: '2.0'
  id: RequestId
  method: string
  params?: Params
}

export interface JSONRPCNotification<Params extends object = Record<string, unknown>> {
  jsonrpc: '2.0'
  method: string
  params?: Params
}

export interface JSONRPCResultResponse<Result extends object = Record<string, unknown>> {
  jsonrpc: '2.0'
  id: RequestId
  result: Result
}

/** Has no id if the request was too broken to read one. */
export interface JSONRPCErrorResponse {
  jsonrpc: '2.0'
  id?: RequestId
  error: JSONRPCErrorObject
}

export interface JSONRPCErrorObject {
  code: number
  message: string
  data?: unknown
}

export type JSONRPCResponse = JSONRPCResultResponse<object> | JSONRPCErrorResponse

export type JSONRPCMessage = JSONRPCRequest<object> | JSONRPCNotification<object> | JSONRPCResponse
