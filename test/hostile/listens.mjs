// What a hostile server tells its subscribers, by the mode that it was started in: a few messages, and then a flood of one kind.

const told = (id, method, params) =>
  JSON.stringify({
    jsonrpc: '2.0',
    method: `notifications/${method}`,
    params: { ...params, _meta: { 'io.modelcontextprotocol/subscriptionId': id } },
  })

const acknowledged = (id) => told(id, 'subscriptions/acknowledged', { notifications: { toolsListChanged: true } })
const updated = (id, uri) => told(id, 'resources/updated', { uri })
let last = 0
const fresh = () => String((last += 1))

const LISTENS = {
  /** Never says that it has heard. */
  silent: () => ({ first: [], times: 0 }),
  /** The same over and over. */
  repeating: (id) => ({ first: [acknowledged(id)], flood: () => told(id, 'tools/list_changed'), times: 20_000 }),
  /** Another resource each time. */
  inventive: (id) => ({ first: [acknowledged(id)], flood: () => updated(id, `memo://${fresh()}`), times: 20_000 }),
  /** Another resource each time, and its name is a megabyte. */
  lengthy: (id) => ({
    first: [acknowledged(id)],
    flood: () => updated(id, `memo://${fresh()}${'a'.repeat(1_000_000)}`),
    times: 200,
  }),
  /** All but what was asked for, of nobody, and in odd shapes. */
  odd: (id) => ({
    first: [
      told(id, 'tools/list_changed'),
      told('__proto__', 'tools/list_changed'),
      told(id, 'resources/updated', { uri: 7 }),
      '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":[]}',
      told(id, 'subscriptions/acknowledged', {
        notifications: { toolsListChanged: 'yes', resourceSubscriptions: [1] },
      }),
      told(id, 'prompts/list_changed'),
    ],
    times: 0,
  }),
}

let poured = Promise.resolve()

/** When the last flood that began is over. */
export const whenPoured = () => poured

/** Begins to tell, by `write`, which gives whether more can be taken at once, and `drained`, which calls back when it can. */
export function beginListening(id, mode, write, drained) {
  const { first, flood, times } = (LISTENS[mode] ?? LISTENS.silent)(id)
  for (const text of first) write(text)
  let left = times
  poured = new Promise((resolve) => {
    const pour = () => {
      while (left > 0) {
        left -= 1
        if (!write(flood())) return drained(pour)
      }
      resolve()
    }
    pour()
  })
}
