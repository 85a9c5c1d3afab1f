import type { Ports, Store } from '../../contract/index.ts'
import { runDestination, type DestinationResult } from '../../destinations/loop/run-destination.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import type { Cli } from '../cli.ts'
import { formatNumber } from './counts.ts'
import { exitCodeOf, worstExitCode } from './exit-code.ts'
import { isoTime } from './json-document.ts'
import { toPrintable } from './printable.ts'
import type { WorkerTarget } from './target.ts'

/** Runs the destinations of a worker once, one after the other, and prints a line for each. */
export async function runDestinations(
  { terminal }: Cli,
  { worker }: WorkerTarget,
  store: Store,
  ports: Ports,
  signal: AbortSignal,
  names?: readonly string[],
): Promise<DestinationResult[]> {
  const results: DestinationResult[] = []
  for (const plan of worker.destinations?.() ?? []) {
    if (signal.aborted || (names !== undefined && !names.includes(plan.name))) continue
    const result = await runDestination(plan, {
      store,
      ports,
      holder: holderName(),
      isHolderGone,
      signal,
      newStoreId: () => crypto.randomUUID(),
    })
    results.push(result)
    if (!terminal.json) terminal.print(describeResult(result))
  }
  return results
}

export function exitCodeOfDestinations(results: readonly DestinationResult[]): number {
  return worstExitCode(results.flatMap(({ report }) => (report?.error == null ? [] : [exitCodeOf(report.error.code)])))
}

export function toDestinationResultDocument({ name, report, changes }: DestinationResult): object {
  return {
    destination: name,
    hasRun: report !== null,
    changes,
    databases: (report?.databases ?? []).map(({ committedAt, failure, ...one }) => ({
      ...one,
      committedAt: committedAt === 0 ? null : isoTime(committedAt),
      failure: failure == null ? null : { ...failure, at: isoTime(failure.at) },
    })),
    error: report?.error ?? null,
    retryAt: isoTime(report?.retryAt ?? null),
  }
}

function describeResult({ name, report, changes }: DestinationResult): string {
  if (report === null) return `destination ${name}: not run, because it is paused or another process runs it`
  if (report.error !== null)
    return `destination ${name}: ${report.error.code} ${toPrintable(report.error.message)} (${report.location})`
  return `destination ${name}: ${formatNumber(changes)} changes applied to ${toPrintable(report.location)}`
}
