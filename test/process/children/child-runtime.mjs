// Shared by all scripts here: input, output, and the compiled package around a sync.
import { once } from 'node:events'
import { readSync, writeSync } from 'node:fs'

export const input = JSON.parse(process.argv[2])

/** Synchronous: a printed line is in the pipe before the next statement runs, also when the next event is SIGKILL. */
export function report(event, fields = {}) {
  writeSync(1, `${JSON.stringify({ event, ...fields })}\n`)
}

// Imported one by one: loading unused modules would take half of a short run.
export const { openStore } = await import(`${input.dist}/stores/open-store.js`)
export const { Worker } = await import(`${input.dist}/worker/worker.js`)
const { runCycle } = await import(`${input.dist}/engine/cycle.js`)
const { holderName, isHolderGone } = await import(`${input.dist}/platform/lease-holder.js`)
const { systemClock } = await import(`${input.dist}/platform/clock.js`)
const { systemRandom } = await import(`${input.dist}/platform/random.js`)
const { createLog } = await import(`${input.dist}/platform/log.js`)

/** One real cycle, reported to the caller only. */
export async function run(store, plan, options = {}) {
  return runCycle(plan, {
    store,
    ports: { clock: systemClock, random: systemRandom, log: createLog({ level: 'silent' }) },
    fetch: globalThis.fetch,
    secrets: { get: () => '' },
    holder: holderName(),
    isHolderGone,
    trigger: 'test',
    ...options,
  })
}

/** Waits until the parent sends a line. */
export async function waitForMessage(signal) {
  try {
    await once(process.stdin, 'data', { signal })
  } finally {
    // An idle input does not keep the process running.
    process.stdin.pause()
  }
}

/** The same with the event loop blocked: no timer fires and no response is read in that time. */
export function blockUntilMessage() {
  const cell = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    try {
      return void readSync(0, Buffer.alloc(16))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
      Atomics.wait(cell, 0, 0, 10)
    }
  }
}
