// node fleet-harness-member.mjs <options as JSON>: one process of a fleet. Prints `up` when it is ready.
import { appendFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../dist/stores/open-store.js'
import { systemClock } from '../../dist/platform/clock.js'
import { holderName } from '../../dist/platform/lease-holder.js'
import { systemRandom } from '../../dist/platform/random.js'
import { listDeclaredSyncs } from '../../dist/runner/declared-sync.js'
import { serveRestate } from '../../dist/runner/restate/serve-restate.js'
import { Runner } from '../../dist/runner/runner.js'
import { createFixtureWorker } from '../../dist/testing/runner-cases/fixture-worker.js'

const {
  store: url,
  tenants,
  concurrency,
  commits,
  freezing,
  pauseMs = 20,
  ingress,
  sliceMs,
  ...stage
} = JSON.parse(process.argv[2])
const store = await openStore(url)
const silent = () => {}
/** Store calls in progress, and what the next ones wait for. */
const calls = { underWay: 0 }
let thawed = Promise.resolve()
const options = {
  store: commits === undefined ? store : witnessed(store),
  tenants,
  concurrency,
  pauseMs,
  pollMs: 200,
  holder: holderName(),
  syncs: listDeclaredSyncs(createFixtureWorker({ ...stage, process: String(process.pid) })),
  ports: {
    clock: systemClock,
    random: systemRandom,
    log: { debug: silent, info: silent, warn: silent, error: silent },
  },
  fetch,
  secrets: (tenant) => ({ get: () => tenant }),
}

/** Records the outcome of every commit in a file that all processes share. */
function witnessed(inner) {
  const commit = async (request) => {
    const {
      lease: {
        ref: { sync },
        holder,
        epoch,
      },
      transition: { page },
    } = request
    if (isTaken(freezing)) await freeze({ sync, holder, epoch, page })
    const outcome = await inner.commit(request)
    appendFileSync(commits, `${JSON.stringify({ sync, holder, epoch, page, outcome: outcome.kind })}\n`)
    return outcome
  }
  const forTenant = (tenant) => witnessed(inner.forTenant(tenant))
  return new Proxy(
    { ...inner, commit, forTenant },
    {
      get(store, name) {
        if (typeof store[name] !== 'function' || name === 'forTenant' || name === 'subscribe') return store[name]
        return async (...args) => {
          await thawed
          calls.underWay++
          return store[name](...args).finally(() => calls.underWay--)
        }
      },
    },
  )
}

/**
 * At the worst time: the page is read, and the commit follows after the wake-up. Other store calls are waited for,
 * because their locks would keep other processes from taking over.
 */
async function freeze(commit) {
  let thaw
  thawed = new Promise((resolve) => (thaw = resolve))
  while (calls.underWay > 1) await sleep(1)
  process.stdout.write(`frozen ${JSON.stringify(commit)}\n`)
  // Not by a signal to itself: on a busy machine it arrived after the signal that resumes the process.
  for (let waits = 0; waits < 15_000 && !isTaken(`${freezing}.${process.pid}`); waits++)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
  thaw()
}

/** Succeeds in one process only. */
function isTaken(file) {
  try {
    rmSync(file)
    return true
  } catch {
    return false
  }
}

const runner = ingress === undefined ? new Runner(options) : null
const served = ingress === undefined ? null : await serveRestate({ ...options, ingress, sliceMs })
process.once('SIGTERM', async () => {
  await (served?.close() ?? runner.stop())
  await store.close()
})
await runner?.start()
process.stdout.write(`up ${served?.url ?? ''}\n`)
