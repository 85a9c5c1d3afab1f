// node bench/programs/replica.mjs <primary url> <replica url> <commits> <page size>: reading from a streaming
// replica and from its primary in turns, as one JSON line. Both on one machine: the load that the replica takes off
// the primary does not show.
import { setTimeout as sleep } from 'node:timers/promises'
import { openPostgresStore } from '../../dist/stores/postgres/store.js'
import { landings, Lander } from '../lander.mjs'

const [url, replicaUrl] = process.argv.slice(2)
const [commits, size] = process.argv.slice(4).map(Number)
const primary = await openPostgresStore({ url })
const calm = await Lander.take(primary, 'calm')
await calm.cycle(landings(0, size * 10))
const replica = await openPostgresStore({ url: replicaUrl })

/** From the acknowledgement of a commit until a reader of the store sees it. */
async function seenAfter(store, position) {
  const from = performance.now()
  while ((await store.headSequence()) < position) await sleep(0)
  return performance.now() - from
}

const lag = { here: [], there: [], busy: [] }
for (let n = 0; n < commits; n++) {
  const position = await calm.cycle(landings(n, 1, n + 1))
  for (const [name, store] of n % 2 === 0
    ? [
        ['here', primary],
        ['there', replica],
      ]
    : [
        ['there', replica],
        ['here', primary],
      ])
    lag[name].push(await seenAfter(store, position))
  await sleep(10)
}
const measured = new AbortController()
const writers = Array.from({ length: 4 }, async (_, w) => {
  const lander = await Lander.take(await openPostgresStore({ url, tenant: `busy-${w}` }), 'busy')
  for (let n = 0; !measured.signal.aborted; n++) await lander.cycle(landings(n * size, size))
  await lander.store.close()
})
for (let n = commits; n < commits * 1.5; n++)
  lag.busy.push(await seenAfter(replica, await calm.cycle(landings(n, 1, n + 1))))
measured.abort()
await Promise.all(writers)
await seenAfter(replica, await primary.headSequence())

const pages = { here: [], there: [] }
for (let turn = 0; turn < 20; turn++)
  for (const [name, store] of [
    ['here', primary],
    ['there', replica],
  ]) {
    const from = performance.now()
    for (let n = 0; n < 50; n++) await store.feed({ after: (n * 7_919) % (size * 9.9), limit: 101, scanMax: 1 })
    pages[name].push(50 / ((performance.now() - from) / 1_000))
  }
await Promise.all([primary.close(), replica.close()])
console.log(JSON.stringify({ lag, pages }))
