// The text of the page, with the key that only the page has. An MCP App and the page by a link are the same page.

/** With a nonce, only the page's own style and script have it: a policy then allows nothing else. */
export async function pageText(key: string, nonce?: string): Promise<string> {
  const { default: page } = await import('./page.html?raw')
  // A custom codec may make a key of any characters.
  const attribute = key.replace(/["&<]/g, (character) => `&#${character.charCodeAt(0)};`)
  const text = page.replace('content="KEY"', () => `content="${attribute}"`)
  if (nonce === undefined) return text
  return text.replace('<style', () => `<style nonce="${nonce}"`).replace('<script', () => `<script nonce="${nonce}"`)
}
