// A process of a peer. It runs lives while it is told to, and says how many have begun and ended.
//
// It is sent `{ run: { count } }` to keep so many lives under way, `{ count: true }` to tell how many there were, and `{ over: true }` to
// start no more of them.

/** `open` returns `life`, which runs one, or `lives`, which keeps several under way. */
export async function servePeer(open) {
  const counts = { begun: 0, ended: 0 }
  const order = { isOver: true }
  const peer = await open(JSON.parse(process.env.BENCH_PEER))
  const lives = peer.lives ?? ((count) => void Array.from({ length: count }, () => oneAfterAnother(peer.life)))
  process.on('disconnect', () => process.exit())
  process.on('message', ({ run, over }) => {
    if (run !== undefined) {
      order.isOver = false
      lives(run.count, () => order.isOver, counts)
    }
    if (over === true) order.isOver = true
    process.send(counts)
  })
  process.send({ isReady: true })

  async function oneAfterAnother(life) {
    try {
      while (!order.isOver) {
        counts.begun += 1
        await life()
        counts.ended += 1
      }
    } catch (error) {
      process.send({ error: String(error?.stack ?? error) })
    }
  }
}
