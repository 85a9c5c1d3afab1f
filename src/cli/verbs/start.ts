import { Command, Option } from 'commander'
import type { Log } from '../../contract/index.ts'
import { checkName } from '../../config/names.ts'
import { createChildLog } from '../../telemetry/child-log.ts'
import { areCoreDumpsEnabled } from '../../platform/core-dumps.ts'
import { guardStrayExceptions } from '../../platform/stray-exceptions.ts'
import type { RunnerEvent } from '../../runner/runner-options.ts'
import { parseCount, parseCountOrZero, parseList, parseUrl } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { renameHeadSequence, resultDocument } from '../kit/progress.ts'
import { redactTidemark } from '../../redaction/redact-state.ts'
import { DEFAULT_PORT } from '../kit/serve-api.ts'
import { openWorkerService, type WorkerService, type WorkerServiceOptions } from '../kit/worker-service.ts'
import { describeSchedule } from '../kit/sync-status.ts'
import { formatTable } from '../kit/table.ts'
import { printTarget, openTargetStore, targetDocument, withStoreFlags, loadWorkerTarget, type TargetFlags, type WorkerTarget } from '../kit/target.ts'

interface StartFlags extends TargetFlags {
  readonly concurrency: number
  readonly grace: number
  readonly api: boolean
  readonly host: string
  readonly port?: number
  readonly corsOrigin?: readonly string[]
  readonly keysOnly?: boolean
  readonly keepLog?: number
  readonly allTenants?: boolean
  readonly runner: 'process' | 'restate'
  readonly restate: string
  readonly restateHost: string
  readonly restatePort: number
  readonly identityKey?: readonly string[]
}

export function startVerb(): Command {
  return withStoreFlags(new Command('start'))
    .summary('run every sync on its schedule, serve the feed and deliver webhooks, until stopped')
    .description('Runs every sync when it is due, serves the feed over HTTP and sends changes to webhooks, until stopped. Any number of these may share one PostgreSQL store; on a replica of one, only the feed is served. Logs go to standard error as JSON lines.')
    .addOption(new Option('--concurrency <n>', 'how many syncs run side by side').argParser(parseCount).default(4))
    .addOption(new Option('--grace <seconds>', 'how long to wait for pages in hand when stopped').argParser(parseCount).default(10))
    .addOption(new Option('--port <n>', `where to serve the feed; 0 takes any (default: ${DEFAULT_PORT}, or any when it is taken)`).argParser(parseCountOrZero))
    .addOption(new Option('--host <address>', 'whom to serve; beyond this machine control needs a key as well').default('127.0.0.1'))
    .option('--cors-origin <origin...>', 'web pages of these origins may ask, with a key (default: none)')
    .option('--keys-only', 'control and the console need a key on this machine too, as behind a proxy')
    .option('--no-api', 'serve nothing')
    .addOption(new Option('--keep-log <days>', 'forget older entries of the log, and records of cycles, that no row stands on, tombstones included; a reader further behind begins anew (default: keep all)').argParser(parseCount))
    .option('--all-tenants', 'run for every tenant of the store, also for those that come later; `--tenant a,b` names several')
    .addOption(new Option('--runner <runner>', 'what says when a sync runs: this process, or Restate').choices(['process', 'restate']).default('process'))
    .addOption(new Option('--restate <url>', 'where Restate takes calls').argParser(parseUrl).default('http://127.0.0.1:8080'))
    .addOption(new Option('--restate-port <n>', 'where Restate calls this process; 0 takes any').argParser(parseCountOrZero).default(9080))
    .addOption(new Option('--restate-host <address>', 'whose calls to take: with Restate on another machine, an address that it reaches').default('127.0.0.1'))
    .addOption(new Option('--identity-key <key>', 'take only calls that the Restate with this public key has signed (publickeyv1_…); may be given more than once').argParser(parseList).env('TIDEMARK_RESTATE_IDENTITY_KEYS'))
}

export const start: VerbAction<[StartFlags]> = async (cli, flags) => {
  const stopping = cli.listenForStop()
  const restate = flags.runner === 'restate' ? { ingress: flags.restate, host: flags.restateHost, port: flags.restatePort, ...(flags.identityKey !== undefined && { identityKeys: flags.identityKey }) } : null
  const [first, ...others] = parseTenants(flags)
  const target = await loadWorkerTarget(cli, first === undefined ? flags : { ...flags, tenant: first })
  await serveWorker(cli, { ...flags, target, tenants: flags.allTenants === true ? 'all' : others, restate }, async (service) => {
    showRestate(cli, flags, service.restateUrl())
    await waitForAbort(stopping)
  })
}

/** What `start` serves, and how. */
export interface ServeOptions extends Pick<StartFlags, 'concurrency' | 'grace' | 'api' | 'host' | 'port' | 'corsOrigin' | 'keysOnly' | 'keepLog'> {
  readonly target: WorkerTarget
  readonly tenants?: NonNullable<WorkerServiceOptions['tenants']>
  readonly restate: NonNullable<WorkerServiceOptions['restate']> | null
}

/** A worker with all that belongs to it, for as long as `whileServed` takes. */
export async function serveWorker(cli: Cli, { restate, tenants = [], ...flags }: ServeOptions, whileServed: (service: WorkerService) => Promise<void>): Promise<void> {
  const target = withInfoLevel(flags.target)
  printTarget(cli, target)
  const store = await openTargetStore(target)
  const outside = await createRuntime(cli, target)
  const guard = guardStrayExceptions((reason) => outside.ports.log.error('a timer or listener of a connector threw', { reason }))
  try {
    if (areCoreDumpsEnabled()) outside.ports.log.warn('a crash would write the memory of this process to a file, keys included; start it with `ulimit -c 0`')
    const service = await openWorkerService({
      target, store, sourceRuntime: outside, concurrency: flags.concurrency, tenants,
      api: flags.api ? { host: flags.host, port: flags.port, keysOnly: flags.keysOnly === true, ...(flags.corsOrigin !== undefined && { corsOrigins: flags.corsOrigin }) } : null,
      keepLogMs: flags.keepLog === undefined ? undefined : flags.keepLog * 86_400_000,
      restate,
      onEvent: cli.terminal.json ? createEventPrinter(cli) : createEventLogger(outside.ports.log),
    })
    try {
      if (store.isReplica === true) showReplica(cli, target, service)
      else showSchedules(cli, target, service, tenants === 'all')
      await service.start()
      await whileServed(service)
    } finally {
      await service.stop(flags.grace * 1_000)
    }
  } finally {
    guard.remove()
    await store.close()
  }
}

/** `--tenant a,b`: the first is the one that is served without a key on this machine. */
function parseTenants({ tenant }: StartFlags): string[] {
  const names = tenant?.split(',') ?? []
  for (const name of names) checkName('tenant', name)
  return [...new Set(names)]
}

export function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** A service says what it does, unless it was told how much to say. */
function withInfoLevel(target: WorkerTarget): WorkerTarget {
  const { settings } = target
  return settings.environment['TIDEMARK_LOG'] ? target : { ...target, settings: { ...settings, logLevel: 'info' } }
}

function showSchedules({ terminal }: Cli, target: WorkerTarget, { api, tenants }: WorkerService, isForAll: boolean): void {
  const { syncs } = target.worker.manifest
  if (terminal.json) {
    terminal.printDocument({ event: 'serving', ...targetDocument(target), ...(isForAll || tenants.size > 1 ? { tenants: isForAll ? 'all' : [...tenants] } : {}), api: api?.url ?? null, syncs: syncs.map(({ name, mode, schedule, databases }) => ({ sync: name, mode, schedule, databases })) })
  } else terminal.print(...formatTable(['SYNC', 'MODE', 'SCHEDULE', 'INTO'], syncs.map(({ name, mode, schedule, databases }) => [name, mode, describeSchedule(schedule), databases.join(', ')])))
  if (!terminal.json && (isForAll || tenants.size > 1)) terminal.print(`Runs for ${isForAll ? 'every tenant of the store' : [...tenants].join(', ')}; the console without a key is of ${target.tenant}.`)
  if (!terminal.json && api !== null) terminal.print(`The console is at ${api.url}/console/.`, `The feed is served at ${api.url}/agents/v1. \`tidemark keys create <name>\` makes a key for it.`)
}

function showReplica({ terminal }: Cli, target: WorkerTarget, { api }: WorkerService): void {
  if (terminal.json) terminal.printDocument({ event: 'serving', ...targetDocument(target), replica: true, api: api!.url, syncs: [] })
  else terminal.print(`The store is a replica: no sync runs here. What it holds is served at ${api!.url}/agents/v1; control is with a server on the primary.`)
}

function showRestate({ terminal }: Cli, { restate: ingress }: StartFlags, url: string | null): void {
  if (url === null) return
  if (terminal.json) return terminal.printDocument({ event: 'restate', url, ingress })
  terminal.print(`Restate at ${ingress} may call ${url}. \`tidemark restate register ${url}\` tells it so, once.`)
}

export function createEventPrinter({ terminal }: Cli): (event: RunnerEvent) => void {
  return ({ kind, ...facts }) => terminal.printDocument({
    event: kind, ...renameHeadSequence(facts),
    ...('tidemark' in facts ? { tidemark: redactTidemark(facts.tidemark, false) } : {}),
    ...('result' in facts ? { result: resultDocument(facts.result, false) } : {}),
  })
}

function createEventLogger(own: Log): (event: RunnerEvent) => void {
  return (event) => {
    // The runner has said so itself.
    if (event.kind === 'store' || event.kind === 'stray') return
    const { tenant, worker, sync } = event
    const log = createChildLog(own, { tenant, worker, sync })
    switch (event.kind) {
      case 'started':
        return log.info('cycle started', { cycle: event.cycle, why: event.why, resumed: event.resumed })
      case 'landed':
        return log.debug('page landed', { cycle: event.cycle, page: event.page, position: event.headSequence })
      case 'waiting':
        return log.info('waiting', { cycle: event.cycle, ms: event.ms, code: event.code })
      case 'ended': {
        const { cycle, stopReason, pages, counts, startedAt, endedAt, error, trace } = event.result
        const fields = { cycle, stopReason, pages, ...counts, ms: endedAt - startedAt, code: error?.code, error: error?.message, trace_id: trace?.traceId, span_id: trace?.spanId }
        return error === null ? log.info('cycle ended', fields) : log.error('cycle failed', fields)
      }
      case 'held':
        return log.debug('held by another runner', { by: event.by })
      default:
        return event satisfies never
    }
  }
}
