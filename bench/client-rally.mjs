// Rally's client as it is published, answering every form.
import { connect } from '../dist/client.js'
import { takeOrders } from './client-flows.mjs'

const onElicit = () => ({ action: 'accept', content: { confirm: true } })

takeOrders(async (url) => {
  const client = await connect(url, { onElicit })
  return {
    call: async () => {
      const { content } = await client.callTool('deploy', { env: 'prod' })
      return content[0].text
    },
    close: () => client.close(),
  }
})
