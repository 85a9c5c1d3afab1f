// What every script here needs: its input, a way to speak, and the compiled package around a sync.
import { once } from 'node:events'
import { readSync, writeSync } from 'node:fs'

export const input = JSON.parse(process.argv[2])

/** At once: a line that was said is in the pipe before the next statement runs, also when the next thing is SIGKILL. */
export function report(event, fields = {}) {
  writeSync(1, `${JSON.stringify({ event, ...fields })}\n`)
}

// One by one: half of a short life would go into loading what it does not use.
export const { openStore } = await import(`${input.dist}/stores/open-store.js`)
export const { Worker } = await import(`${input.dist}/worker/worker.js`)
const { runCycle } = await import(`${input.dist}/engine/cycle.js`)
const { holderName, isHolderGone } = await import(`${input.dist}/platform/lease-holder.js`)
const { systemClock } = await import(`${input.dist}/platform/clock.js`)
const { systemRandom } = await import(`${input.dist}/platform/random.js`)
const { createLog } = await import(`${input.dist}/platform/log.js`)

/** One cycle with everything real, told to nobody but the caller. */
export async function run(store, plan, options = {}) {
  return runCycle(plan, {
    store, ports: { clock: systemClock, random: systemRandom, log: createLog({ level: 'silent' }) }, fetch: globalThis.fetch,
    secrets: { get: () => '' }, holder: holderName(), isHolderGone, trigger: 'test', ...options,
  })
}

/** Waits until the parent says something. */
export async function waitForMessage(signal) {
  try {
    await once(process.stdin, 'data', { signal })
  } finally {
    // What nobody listens to keeps no process alive.
    process.stdin.pause()
  }
}

/** The same with the event loop blocked: not one timer fires and not one answer is read in that time. */
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
