// node bench/programs/landing.mjs <store url> <records> <page size>: the store's commit beside the raw limit, as one
// JSON line. Pages alternate between the two, so that a busy machine slows both; the median ratio of ten parts counts.
// Pages are serialised and hashed beforehand, and only the transaction is timed. Both run in this thread. Processor
// time is measured beside wall time: on a busy machine it is the steadier of the two, but it does not include waiting
// for the disk.
import { Lander, landingOf, openBareStore } from '../lander.mjs'
import { median } from '../measures.mjs'
import { connectionCpu } from '../connection-cpu.mjs'
import { openRaw } from '../raw/open.mjs'
import { keyOf, pagesOf, PASSES, recordOf } from '../records.mjs'

const [url, count, size] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const store = await openBareStore(url)
const raw = await openRaw(url)
const lander = await Lander.take(store, 'landing')
const results = {}
for (const pass of Object.keys(PASSES)) results[pass] = await measure(pass)
await lander.release()
await store.close()
await raw.close()
console.log(JSON.stringify(results))

async function measure(pass) {
  await raw.recreate()
  await lander.begin('replace')
  const pages = [...pagesOf(pass, count, size)]
  const times = []
  const before = await connectionCpu(raw)
  for (const [at, page] of pages.entries()) {
    const records = page.map(([i, version]) => recordOf(i, version))
    const incoming = records.map((record) => landingOf(record))
    const bare = raw.prepare(records)
    const last = at === pages.length - 1
    const sweep = { maxShare: 0.5, allowEmpty: false }
    const commit = () => timed(() => (last ? lander.complete(incoming, sweep) : lander.continue(incoming)))
    const write = () => timed(() => raw.write(bare))
    const [first, second] = at % 2 === 0 ? [write, commit] : [commit, write]
    const [one, other] = [await first(), await second()]
    const [bareTime, ourTime] = at % 2 === 0 ? [one, other] : [other, one]
    times.push({ rows: page.length, raw: bareTime.ms, ours: ourTime.ms, rawCpu: bareTime.cpu, oursCpu: ourTime.cpu })
  }
  const ratios = parts(times, 10).map((part) => sum(part, 'raw') / sum(part, 'ours'))
  const rows = sum(times, 'rows')
  const after = await connectionCpu(raw)
  const cpuOf = (whose) => sum(times, `${whose}Cpu`) + after[whose] - before[whose]
  const result = {
    ratio: median(ratios),
    raw: rate(rows, sum(times, 'raw')),
    ours: rate(rows, sum(times, 'ours')),
    cpuRatio: cpuOf('raw') / cpuOf('ours'),
  }
  return pass === 'sweep1' ? { ...result, ...(await removal(times.at(-1))) } : result
}

/** The last page of the sweep deletes; the raw limit is a delete by keys in the bare table. */
async function removal({ ours, raw: page }) {
  const keys = Array.from({ length: count }, (_, i) => i)
    .filter((i) => PASSES.sweep1(i) === null)
    .map(keyOf)
  await raw.write(raw.prepare(keys.map((_, n) => recordOf(n * 100 + 99))))
  const { ms: rawMs } = await timed(() => raw.remove(keys))
  return { swept: keys.length, sweepMs: ours, rawSweepMs: page + rawMs }
}

async function timed(act) {
  const [startedAt, before] = [performance.now(), process.cpuUsage()]
  await act()
  const { user, system } = process.cpuUsage(before)
  return { ms: performance.now() - startedAt, cpu: (user + system) / 1_000 }
}

function parts(list, wanted) {
  const length = Math.ceil(list.length / wanted)
  return Array.from({ length: Math.ceil(list.length / length) }, (_, n) => list.slice(n * length, (n + 1) * length))
}

function sum(list, member) {
  return list.reduce((total, entry) => total + entry[member], 0)
}

function rate(rows, ms) {
  return rows / (ms / 1_000)
}
