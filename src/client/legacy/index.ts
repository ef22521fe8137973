// Everything about older servers, to be loaded together, and only once one is met.
export { OLDER_NAMES } from '../../protocol/revisions/index.ts'
export { isOlder } from './detect-legacy.ts'
export { HttpChannel } from './http-channel.ts'
export { RequiredVisits } from './required-visits.ts'
export { Session } from './session.ts'
export { stdioChannel } from './stdio-channel.ts'
