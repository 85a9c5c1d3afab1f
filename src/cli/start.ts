import { Command, Option } from 'commander'
import type { Log } from '../contract/index.ts'
import { holderName, isDeadHolder } from '../platform/holder.ts'
import { syncsOf } from '../runner/declared-sync.ts'
import type { RunnerEvent } from '../runner/runner-options.ts'
import { Runner } from '../runner/runner.ts'
import { countArgument } from './arguments.ts'
import type { Act, Cli } from './cli.ts'
import { outsideOf } from './outside.ts'
import { resultDocument } from './progress.ts'
import { showTidemark } from './redact.ts'
import { describeSchedule } from './standing.ts'
import { table } from './table.ts'
import { announce, openTargetStore, targetDocument, withStoreFlags, workerTarget, type TargetFlags, type WorkerTarget } from './target.ts'

interface StartFlags extends TargetFlags {
  readonly concurrency: number
  readonly grace: number
}

export function startVerb(): Command {
  return withStoreFlags(new Command('start'))
    .summary('run every sync on its schedule, until stopped')
    .description('Runs every sync when it is due, until stopped. Any number of these may share one PostgreSQL store. Logs go to standard error as JSON lines.')
    .addOption(new Option('--concurrency <n>', 'how many syncs run side by side').argParser(countArgument).default(4))
    .addOption(new Option('--grace <seconds>', 'how long to wait for pages in hand when stopped').argParser(countArgument).default(10))
}

export const start: Act<[StartFlags]> = async (cli, flags) => {
  const stopping = cli.listenForStop()
  const target = withLogs(await workerTarget(cli, flags))
  announce(cli, target)
  const store = await openTargetStore(target)
  try {
    const outside = outsideOf(cli, target)
    const runner = new Runner({
      ...outside, store, syncs: syncsOf(target.worker), holder: holderName(), isDead: isDeadHolder, concurrency: flags.concurrency,
      onEvent: cli.terminal.json ? eventLines(cli) : eventLog(outside.ports.log),
    })
    showSchedules(cli, target)
    await runner.start()
    await aborted(stopping)
    await runner.stop({ graceMs: flags.grace * 1_000 })
  } finally {
    await store.close()
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** A service says what it does, unless it was told how much to say. */
function withLogs(target: WorkerTarget): WorkerTarget {
  const { settings } = target
  return settings.environment['TIDEMARK_LOG'] ? target : { ...target, settings: { ...settings, logLevel: 'info' } }
}

function showSchedules({ terminal }: Cli, target: WorkerTarget): void {
  const { syncs } = target.worker.manifest
  if (terminal.json) {
    terminal.document({ event: 'serving', ...targetDocument(target), syncs: syncs.map(({ name, mode, schedule, databases }) => ({ sync: name, mode, schedule, databases })) })
  } else terminal.print(...table(['SYNC', 'MODE', 'SCHEDULE', 'INTO'], syncs.map(({ name, mode, schedule, databases }) => [name, mode, describeSchedule(schedule), databases.join(', ')])))
}

function eventLines({ terminal }: Cli): (event: RunnerEvent) => void {
  return ({ kind, ...facts }) => terminal.document({
    event: kind, ...facts,
    ...('tidemark' in facts ? { tidemark: showTidemark(facts.tidemark, false) } : {}),
    ...('result' in facts ? { result: resultDocument(facts.result, false) } : {}),
  })
}

function eventLog(log: Log): (event: RunnerEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'started':
        return log.info('cycle started', { ...whose(event), cycle: event.cycle, why: event.why, resumed: event.resumed })
      case 'landed':
        return log.debug('page landed', { ...whose(event), page: event.page, position: event.position })
      case 'waiting':
        return log.info('waiting', { ...whose(event), ms: event.ms, code: event.code })
      case 'ended': {
        const { cycle, stopReason, pages, counts, startedAt, endedAt, error } = event.result
        const fields = { ...whose(event), cycle, stopReason, pages, ...counts, ms: endedAt - startedAt, code: error?.code, error: error?.message }
        return error === null ? log.info('cycle ended', fields) : log.error('cycle failed', fields)
      }
      case 'held':
        return log.debug('held by another runner', { ...whose(event), by: event.by })
      // The runner has said so itself.
      case 'store':
      case 'stray':
        return
      default:
        return event satisfies never
    }
  }
}

function whose({ tenant, worker, sync }: { tenant: string; worker: string; sync: string }): { tenant: string; worker: string; sync: string } {
  return { tenant, worker, sync }
}
