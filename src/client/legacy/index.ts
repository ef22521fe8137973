// Everything about legacy servers. It is loaded only when the client meets one.
export { OLDER_NAMES } from '../../protocol/revisions/index.ts'
export { stdioChannel } from './channel.ts'
export { isLegacyServer } from './detect-legacy.ts'
export { HttpChannel } from './http-channel.ts'
export { RequiredVisits } from './required-visits.ts'
export { Session } from './session.ts'
export { SseChannel } from './sse-channel.ts'
