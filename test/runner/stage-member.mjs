// node stage-member.mjs <options as JSON>: one process of a fleet on a stage. Says `up` when it is at work.
import { appendFileSync, existsSync } from 'node:fs'
import { openStore } from '../../dist/config/open-store.js'
import { systemClock } from '../../dist/platform/clock.js'
import { holderName } from '../../dist/platform/holder.js'
import { systemRandom } from '../../dist/platform/random.js'
import { syncsOf } from '../../dist/runner/declared-sync.js'
import { Runner } from '../../dist/runner/runner.js'
import { stageWorker } from '../../dist/testing/runner-cases/stage-worker.js'

const { store: url, tenants, concurrency, commits, freezing, freezeEvery, pauseMs = 20, ...stage } = JSON.parse(process.argv[2])
const store = await openStore(url)
const silent = () => {}
let count = 0
const runner = new Runner({
  store: commits === undefined ? store : witnessed(store), tenants, concurrency, pauseMs, pollMs: 200, holder: holderName(),
  syncs: syncsOf(stageWorker({ ...stage, process: String(process.pid) })),
  ports: { clock: systemClock, random: systemRandom, log: { debug: silent, info: silent, warn: silent, error: silent } },
  fetch, secrets: (tenant) => ({ get: () => tenant }),
})

/** What became of every commit, in a file that all processes share. */
function witnessed(inner) {
  const commit = async (request) => {
    // At the worst moment: the page is read, and what follows on waking up is to land it.
    if (++count % freezeEvery === 0 && existsSync(freezing)) {
      process.stdout.write('frozen\n')
      process.kill(process.pid, 'SIGSTOP')
    }
    const outcome = await inner.commit(request)
    appendFileSync(commits, `${JSON.stringify({ process: process.pid, sync: request.lease.ref.sync, epoch: request.lease.epoch, outcome: outcome.kind })}\n`)
    return outcome
  }
  return { ...inner, commit, forTenant: (tenant) => witnessed(inner.forTenant(tenant)) }
}

process.once('SIGTERM', async () => {
  await runner.stop()
  await store.close()
})
await runner.start()
process.stdout.write('up\n')
