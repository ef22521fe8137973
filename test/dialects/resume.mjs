// A process that takes up a pending round: URL, PENDING and ANSWERS are in its environment, and the result is what it prints.
import { connect } from 'mcp-rally/client'

const { URL: url, PENDING: text, ANSWERS: answers } = process.env
const pending = JSON.parse(text)
const client = await connect(url, { can: ['elicitation.form'], revision: pending.revision })
try {
  console.log(JSON.stringify(await client.resume(pending, JSON.parse(answers))))
} finally {
  await client.close()
}
