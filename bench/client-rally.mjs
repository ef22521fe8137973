// Rally's client as it is published, answering every form.
import { takeOrders } from './client-flows.mjs'
import { importBuilt } from './dist.mjs'

const { connect } = await importBuilt('client.js')

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
