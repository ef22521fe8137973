// Opens a page with what the platform has for that. Only what the user agreed to comes here.
import { spawn } from 'node:child_process'

/** Gives whether something was there to open it with. */
export function openPage(url: string): Promise<boolean> {
  // As the URL parser writes it: no option, no space, nothing for a shell. And no shell.
  const { href } = new URL(url)
  const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open']
  return new Promise((settle) => {
    const opener = spawn(command, [...args, href], { stdio: 'ignore', detached: true })
    opener.once('spawn', () => {
      opener.unref()
      settle(true)
    })
    opener.once('error', () => settle(false))
  })
}

const OPENERS: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}
