// The JSON-RPC 2.0 envelope that every message travels in.

export type RequestId = string | number

/** `Params` is what the sender knows of them; read from the wire they are an unchecked record. */
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

/** Has no id where the request was too broken to tell it. */
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
