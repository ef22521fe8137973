// The names of methods that are not the protocol's own, such as those of an extension.

const NAME = /^[A-Za-z][\w.-]*(?:\/[\w.-]+)+$/
const MAX_LENGTH = 128

/** The protocol has or may get methods that begin like this. */
const TAKEN =
  /^(?:completion|elicitation|initialize|logging|notifications|ping|prompts|resources|roots|sampling|server|skills|subscriptions|tasks|tools)\//

/** True for the name of a method that an app may bring itself, such as `com.example/thing`. */
export function isOwnMethod(name: unknown): name is string {
  return typeof name === 'string' && name.length <= MAX_LENGTH && NAME.test(name) && !TAKEN.test(name)
}
