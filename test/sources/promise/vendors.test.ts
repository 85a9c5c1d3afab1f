import { describe, test } from 'vitest'
import { describeSource } from '../../../src/testing/describe-source.ts'
import { RandomStream } from '../../../src/testing/simulation/random-stream.ts'
import { OPT_IN_STREAMS, VENDOR_STREAMS } from '../../../src/testing/simulation/vendors/vendor-streams.ts'
import type { VendorStream } from '../../../src/testing/simulation/vendors/vendor-stream.ts'
import { createSimulatorFetch } from '../../../simulators/src/index.ts'
import { SkippingClock } from '../../../src/testing/skipping-clock.ts'
import type { SourceHarness } from '../../../src/testing/source-cases/harness.ts'

const CONDITIONS = { pageSize: 6, lag: { share: 0, maxMs: 0 }, limited: false }

const PACE_MS_MAX = 8_000

/** Skips the waits between requests that a source paces, and between polls of a job. A longer wait is a timeout, which must not elapse. */
class UnpacedClock extends SkippingClock {
  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms > PACE_MS_MAX) return super.sleep(ms, signal)
    signal?.throwIfAborted()
    this.skip(ms)
  }
}

/** Every vendor source against its simulator. */
function openHarness(stream: VendorStream): SourceHarness {
  const clock = new UnpacedClock()
  const chance = new RandomStream(1, 'writes')
  const simulator = stream.open({ clock, random: new RandomStream(1, 'vendor') }, CONDITIONS)
  stream.prepare?.(simulator)
  const source = stream.source(CONDITIONS)
  let writes = 0
  return {
    source,
    clock,
    fetch: createSimulatorFetch(simulator),
    secrets: { TOKEN: 'secret' },
    ...('guarantee' in source && {
      cyclesPerRound: source.guarantee.cyclesPerRound,
      deltaReportsDeletes: source.guarantee.reports(null).deletes,
    }),
    create: (count) =>
      Array.from({ length: count }, () =>
        simulator.create(stream.type, {
          ...stream.parentFields?.(simulator, chance),
          ...stream.fields(++writes, chance),
        }),
      ),
    change: (keys) => keys.forEach((key) => simulator.update(stream.type, key, stream.fields(++writes, chance))),
    remove: (keys) => keys.forEach((key) => simulator.remove(stream.type, key)),
    rows: () =>
      Object.fromEntries(
        simulator
          .truth(stream.type)
          .map((record) => [String(record[stream.keyField]), stream.rowOf(record, simulator)]),
      ),
    settle: () => clock.skip(5 * 60_000),
  }
}

for (const stream of [...VENDOR_STREAMS, ...OPT_IN_STREAMS]) {
  describeSource(`${stream.vendor} ${stream.name}`, () => openHarness(stream), { runner: { describe, test } })
}
