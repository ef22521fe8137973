// The version of this package. package.json is the only place that states it: the build puts it in here.
import packageJson from '../../package.json' with { type: 'json' }

export const VERSION: string = packageJson.version
