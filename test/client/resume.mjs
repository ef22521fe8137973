// A process that takes up a pending round: URL, PENDING and ANSWERS are in its environment, and the result is what it prints.
import { connect } from 'mcp-rally/client'

const { URL: url, PENDING: pending, ANSWERS: answers } = process.env
const client = await connect(url, { can: ['elicitation.form'] })
try {
  console.log(JSON.stringify(await client.resume(JSON.parse(pending), JSON.parse(answers))))
} catch ({ code, rpcCode, message }) {
  console.log(JSON.stringify({ code, rpcCode, message }))
} finally {
  await client.close()
}
