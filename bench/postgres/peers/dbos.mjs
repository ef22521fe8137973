// DBOS, as its documentation shows it: each step is recorded, the question is an event, and its answer is a message.
import { DBOS } from '@dbos-inc/dbos-sdk'
import { servePeer } from '../process.mjs'

const deploy = DBOS.registerWorkflow(
  async () => {
    await DBOS.runStep(async () => 'built', { name: 'build' })
    await DBOS.runStep(async () => 'tested', { name: 'test' })
    await DBOS.setEvent('confirm', 'Deploy to production?')
    const { confirm } = await DBOS.recv('confirm', 60)
    await DBOS.runStep(async () => 'deployed', { name: 'deploy' })
    await DBOS.runStep(async () => 'told', { name: 'tell' })
    return confirm === true ? 'Deployed' : 'Left as it was'
  },
  { name: 'deploy' },
)

await servePeer(async ({ url, connections, index }) => {
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: url,
    systemDatabasePoolSize: connections,
    executorID: `executor-${index}`,
    logLevel: 'error',
  })
  await DBOS.launch()
  return { life }
})

async function life() {
  const handle = await DBOS.startWorkflow(deploy)()
  const question = await DBOS.getEvent(handle.workflowID, 'confirm', 60)
  if (question !== 'Deploy to production?') throw new Error(`The workflow should ask, got ${question}`)
  await DBOS.send(handle.workflowID, { confirm: true }, 'confirm')
  const result = await handle.getResult()
  if (result !== 'Deployed') throw new Error(`The workflow should be completed, got ${result}`)
}
