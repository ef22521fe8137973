// Where our server is: `--url http://...`, or a command of its own. And what a client has seen there.
const [first, ...rest] = process.argv.slice(2)

export const target = first === '--url' ? { url: rest[0] } : { command: first, args: rest }

export function report(tools, ...results) {
  const names = tools.map(({ name }) => name)
  const texts = results.map((result) => (typeof result === 'string' ? result : result.content[0].text))
  console.log(JSON.stringify({ tools: names.toSorted(), texts }))
  // Some keep their process alive.
  process.exit()
}
