// mcp-rally/otel: OpenTelemetry spans and metrics. The only entry that loads @opentelemetry/api.
export { otel, type OtelOptions } from './otel/otel.ts'
