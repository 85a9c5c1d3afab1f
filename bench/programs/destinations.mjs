// node bench/programs/destinations.mjs <kind> <url> <records> <turns> <file>: a load of a destination from a SQLite store
// beside the bulk load of the same typed rows from memory, in batches of the same size, alternating. As one JSON line: the
// rates, the processor time of this process and of the server, and the memory of this process in both halves of a load.
import { readdirSync, readFileSync } from 'node:fs'
import { DEFAULT_LIMITS } from '../../dist/destinations/loop/read-batches.js'
import { runDestination } from '../../dist/destinations/loop/run-destination.js'
import { systemClock } from '../../dist/platform/clock.js'
import { openSqliteStore } from '../../dist/stores/sqlite/store.js'
import { Lander, landings } from '../lander.mjs'
import { recordOf } from '../records.mjs'

const [kind, url, count, turns, file] = process.argv
  .slice(2)
  .map((value, at) => (at === 2 || at === 3 ? Number(value) : value))
const { openDestination } = await import(`../raw/destinations/${kind}.mjs`)
const store = await openSqliteStore({ file })
await fill()
const side = await openDestination(url)
const batchRows = Math.round(DEFAULT_LIMITS.bytesMax / JSON.stringify(recordOf(count)).length)
const results = { ours: [], raw: [] }
for (let turn = 0; turn < turns; turn++) {
  const order = turn % 2 === 0 ? ['raw', 'ours'] : ['ours', 'raw']
  for (const whose of order) results[whose].push(await measured(whose === 'raw' ? loadRaw : loadOurs))
}
await side.close()
await store.close()
console.log(JSON.stringify(results))

async function fill() {
  if ((await store.headSequence()) > 0) return
  const lander = await Lander.take(store, 'fill')
  await lander.begin('replace')
  for (let from = 0; from < count; from += 10_000) {
    const page = landings(from, Math.min(10_000, count - from))
    await (from + 10_000 >= count ? lander.complete(page, { maxShare: 1, allowEmpty: true }) : lander.continue(page))
  }
  await lander.release()
}

/** The next batch is encoded while the server takes one. */
async function loadRaw() {
  await side.begin()
  let writing = Promise.resolve()
  for (let from = 0; from < count; from += batchRows) {
    const batch = Array.from({ length: Math.min(batchRows, count - from) }, (_, n) => {
      const record = recordOf(from + n)
      return [record.id, from + n, '2026-01-01T00:00:00.000Z', null, ...Object.values(record)]
    })
    const data = side.prepare(batch)
    await writing
    writing = side.write(data)
  }
  await writing
  await side.end()
}

async function loadOurs() {
  const silent = () => {}
  const session = await side.destination.open({ tenant: 'default', signal: new AbortController().signal })
  await session.remove('accounts')
  await session.close()
  const { report } = await runDestination(
    { name: 'copy', destination: side.destination, databases: ['accounts'], mode: 'mirror' },
    {
      store,
      ports: {
        clock: systemClock,
        random: { next: () => 0.5 },
        log: { debug: silent, info: silent, warn: silent, error: silent },
      },
      holder: 'bench',
      signal: new AbortController().signal,
      newStoreId: () => 'bench',
    },
  )
  if (report?.error !== null) throw new Error(JSON.stringify(report))
  const copied = await side.count()
  if (copied !== count) throw new Error(`${copied} of ${count} rows were copied`)
}

async function measured(act) {
  globalThis.gc?.()
  const memory = []
  const timer = setInterval(() => memory.push(process.memoryUsage().rss), 100)
  const [startedAt, before, serverBefore] = [performance.now(), process.cpuUsage(), serverCpu()]
  await act()
  const ms = performance.now() - startedAt
  clearInterval(timer)
  const { user, system } = process.cpuUsage(before)
  const middle = memory.length >> 1
  const megabytes = (values) => Math.round(Math.max(0, ...values) / 1e6)
  return {
    rate: count / (ms / 1_000),
    cpuMs: (user + system) / 1_000,
    serverMs: serverCpu() - serverBefore,
    memory: [megabytes(memory.slice(0, middle)), megabytes(memory.slice(middle))],
  }
}

/** Milliseconds of processor time of the server's processes, and of those that have ended. */
function serverCpu() {
  const own = ticks(side.pid)
  let sum = own.self + own.ended
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const child = ticks(name)
    if (child.parent === side.pid) sum += child.self
  }
  return sum * 10
}

function ticks(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    return { parent: fields[1], self: fields[11] + fields[12], ended: fields[13] + fields[14] }
  } catch {
    return { parent: 0, self: 0, ended: 0 }
  }
}
