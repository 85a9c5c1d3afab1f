import { Command, Option } from 'commander'
import type { Log } from '../../contract/index.ts'
import { checkName } from '../../config/names.ts'
import { createChildLog } from '../../telemetry/child-log.ts'
import { areCoreDumpsEnabled } from '../../platform/core-dumps.ts'
import { DEFAULT_PORT } from '../../embed/serve-api.ts'
import { locateStore } from '../../stores/drivers.ts'
import { confinedSelectOf } from '../../stores/run-select.ts'
import { openService, type Service, type ServiceOptions } from '../../embed/service.ts'
import { guardStrayExceptions } from '../../platform/stray-exceptions.ts'
import type { TenantDestinationEvent } from '../../destinations/loop/destination-runner.ts'
import type { RunnerEvent } from '../../runner/runner-options.ts'
import { required } from '../../values/required.ts'
import { parseCount, parseCountOrZero, parseList, parseUrl } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { isoTime } from '../kit/json-document.ts'
import { resultDocument } from '../kit/progress.ts'
import { redactTidemark } from '../../redaction/redact-state.ts'
import { describeSchedule } from '../kit/sync-status.ts'
import { formatTable } from '../kit/table.ts'
import { waitForAbort } from '../kit/wait-for-abort.ts'
import {
  printTarget,
  openTargetStore,
  targetDocument,
  withStoreFlags,
  loadWorkerTarget,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

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
    .summary('run syncs on schedule, serve the feed, deliver webhooks')
    .description(
      'Runs every sync on its schedule, serves the feed over HTTP and delivers webhooks until stopped. Any number of processes can share one PostgreSQL store; on a replica only the feed is served. Logs are JSON lines on standard error. With --keep-log, the current version of each row stays, and consumers that are further behind than the retention must start over.',
    )
    .addOption(new Option('--concurrency <n>', 'number of syncs to run in parallel').argParser(parseCount).default(4))
    .addOption(
      new Option('--grace <seconds>', 'time to finish current pages on shutdown').argParser(parseCount).default(10),
    )
    .addOption(
      new Option('--port <n>', `port of the API; 0 for any (default: ${DEFAULT_PORT}, or any if taken)`).argParser(
        parseCountOrZero,
      ),
    )
    .addOption(
      new Option('--host <address>', 'address to bind; non-loopback addresses require an API key').default('127.0.0.1'),
    )
    .option('--cors-origin <origin...>', 'allow these web origins, with a key (default: none)')
    .option('--keys-only', 'require an API key on loopback too, as behind a proxy')
    .option('--no-api', 'do not serve the API')
    .addOption(
      new Option('--keep-log <days>', 'delete replaced versions and runs older than N days').argParser(parseCount),
    )
    .option('--all-tenants', 'run for all current and future tenants of the store')
    .addOption(
      new Option('--runner <runner>', 'scheduler: this process, or Restate')
        .choices(['process', 'restate'])
        .default('process'),
    )
    .addOption(
      new Option('--restate <url>', 'ingress address of Restate').argParser(parseUrl).default('http://127.0.0.1:8080'),
    )
    .addOption(
      new Option('--restate-port <n>', 'port on which Restate calls this process; 0 for any')
        .argParser(parseCountOrZero)
        .default(9080),
    )
    .addOption(new Option('--restate-host <address>', 'address to bind for calls from Restate').default('127.0.0.1'))
    .addOption(
      new Option('--identity-key <key>', 'public key that must sign Restate calls; repeatable')
        .argParser(parseList)
        .env('TIDEMARK_RESTATE_IDENTITY_KEYS'),
    )
}

export const start: VerbAction<[StartFlags]> = async (cli, flags) => {
  const stopping = cli.listenForStop()
  const restate =
    flags.runner === 'restate'
      ? {
          ingress: flags.restate,
          host: flags.restateHost,
          port: flags.restatePort,
          ...(flags.identityKey !== undefined && { identityKeys: flags.identityKey }),
        }
      : null
  const [first, ...others] = parseTenants(flags)
  const target = await loadWorkerTarget(cli, first === undefined ? flags : { ...flags, tenant: first })
  await serveWorker(
    cli,
    { ...flags, target, tenants: flags.allTenants === true ? 'all' : others, restate },
    async (service) => {
      showRestate(cli, flags, service.restateUrl())
      await waitForAbort(stopping)
    },
  )
}

/** The worker that `start` serves, and its options. */
export interface ServeOptions extends Pick<
  StartFlags,
  'concurrency' | 'grace' | 'api' | 'host' | 'port' | 'corsOrigin' | 'keysOnly' | 'keepLog'
> {
  readonly target: WorkerTarget
  readonly tenants?: NonNullable<ServiceOptions['tenants']>
  readonly restate: NonNullable<ServiceOptions['restate']> | null
}

/** Serves a worker until `whileServed` settles. */
export async function serveWorker(
  cli: Cli,
  { restate, tenants = [], ...flags }: ServeOptions,
  whileServed: (service: Service) => Promise<void>,
): Promise<void> {
  const target = withInfoLevel(flags.target)
  printTarget(cli, target)
  const store = await openTargetStore(target)
  const runtime = await createRuntime(cli, target)
  const guard = guardStrayExceptions((reason) =>
    runtime.ports.log.error('a timer or event listener of a connector threw', { reason }),
  )
  try {
    if (areCoreDumpsEnabled())
      runtime.ports.log.warn(
        'core dumps are enabled: a crash would write the memory of this process, including keys, to a file; disable them with `ulimit -c 0`',
      )
    const service = await openService({
      workers: [target.worker],
      store,
      sourceRuntime: runtime,
      concurrency: flags.concurrency,
      tenants,
      api: flags.api
        ? {
            address: { host: flags.host, port: flags.port },
            keysOnly: flags.keysOnly === true,
            select: confinedSelectOf(locateStore(target.settings.storeUrl, target.settings.folder)),
            ...(flags.corsOrigin !== undefined && { corsOrigins: flags.corsOrigin }),
          }
        : null,
      keepLogMs: flags.keepLog === undefined ? undefined : flags.keepLog * 86_400_000,
      restate,
      onEvent: cli.terminal.json ? createEventPrinter(cli) : createEventLogger(runtime.ports.log),
      // A destination logs its events itself.
      ...(cli.terminal.json && { onDestinationEvent: createDestinationEventPrinter(cli) }),
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

/** `--tenant a,b`: on loopback, the first tenant is served without a key. */
function parseTenants({ tenant }: StartFlags): string[] {
  const names = tenant?.split(',') ?? []
  for (const name of names) checkName('tenant', name)
  return [...new Set(names)]
}

/** A service logs at level info unless TIDEMARK_LOG is set. */
function withInfoLevel(target: WorkerTarget): WorkerTarget {
  const { settings } = target
  return settings.environment['TIDEMARK_LOG'] ? target : { ...target, settings: { ...settings, logLevel: 'info' } }
}

function showSchedules({ terminal }: Cli, target: WorkerTarget, { api, tenants }: Service, isForAll: boolean): void {
  const { syncs } = target.worker.manifest
  if (terminal.json) {
    terminal.printDocument({
      event: 'serving',
      ...targetDocument(target),
      ...(isForAll || tenants.size > 1 ? { tenants: isForAll ? 'all' : [...tenants] } : {}),
      api: api?.url ?? null,
      syncs: syncs.map(({ name, mode, schedule, databases }) => ({ sync: name, mode, schedule, databases })),
    })
  } else
    terminal.print(
      ...formatTable(
        ['SYNC', 'MODE', 'SCHEDULE', 'INTO'],
        syncs.map(({ name, mode, schedule, databases }) => [
          name,
          mode,
          describeSchedule(schedule),
          databases.join(', '),
        ]),
      ),
    )
  if (!terminal.json && (isForAll || tenants.size > 1))
    terminal.print(
      `Running for ${isForAll ? 'every tenant of the store' : [...tenants].join(', ')}. Without a key, the console shows tenant ${target.tenant}.`,
    )
  if (!terminal.json && api !== null)
    terminal.print(
      `Console: ${api.url}/console/`,
      `Feed: ${api.url}/agents/v1 (create a key with \`tidemark keys create <name>\`)`,
    )
}

function showReplica({ terminal }: Cli, target: WorkerTarget, { api }: Service): void {
  const { url } = required(api, 'the API of the replica')
  if (terminal.json)
    terminal.printDocument({ event: 'serving', ...targetDocument(target), replica: true, api: url, syncs: [] })
  else
    terminal.print(
      `The store is a read-only replica, so no syncs run here. Feed: ${url}/agents/v1. Use a server on the primary to control syncs.`,
    )
}

function showRestate({ terminal }: Cli, { restate: ingress }: StartFlags, url: string | null): void {
  if (url === null) return
  if (terminal.json) return terminal.printDocument({ event: 'restate', url, ingress })
  terminal.print(
    `Serving Restate at ${url} (ingress ${ingress}). Register it once with \`tidemark restate register ${url}\`.`,
  )
}

export function createEventPrinter({ terminal }: Cli): (event: RunnerEvent) => void {
  return ({ kind, ...facts }) =>
    terminal.printDocument({
      event: kind,
      ...facts,
      ...('tidemark' in facts ? { tidemark: redactTidemark(facts.tidemark, false) } : {}),
      ...('result' in facts ? { result: resultDocument(facts.result, false) } : {}),
    })
}

function createDestinationEventPrinter({ terminal }: Cli): (event: TenantDestinationEvent) => void {
  return ({ kind, at, ...facts }) =>
    terminal.printDocument({
      event: kind,
      at: isoTime(at),
      ...facts,
      ...('retryAt' in facts ? { retryAt: facts.retryAt === null ? null : isoTime(facts.retryAt) } : {}),
    })
}

function createEventLogger(parent: Log): (event: RunnerEvent) => void {
  return (event) => {
    // The runner logs these itself.
    if (event.kind === 'store' || event.kind === 'stray') return
    const { tenant, worker, sync } = event
    const log = createChildLog(parent, { tenant, worker, sync })
    switch (event.kind) {
      case 'started':
        return log.info('cycle started', { cycle: event.cycle, why: event.why, resumed: event.resumed })
      case 'landed':
        return log.debug('page landed', { cycle: event.cycle, page: event.page, headSequence: event.headSequence })
      case 'waiting':
        return log.info('waiting', { cycle: event.cycle, ms: event.ms, code: event.code })
      case 'ended': {
        const { cycle, stopReason, pages, counts, startedAt, endedAt, error, trace } = event.result
        const fields = {
          cycle,
          stopReason,
          pages,
          ...counts,
          ms: endedAt - startedAt,
          code: error?.code,
          error: error?.message,
          trace_id: trace?.traceId,
          span_id: trace?.spanId,
        }
        return error === null ? log.info('cycle ended', fields) : log.error('cycle failed', fields)
      }
      case 'held':
        return log.debug('lease held by another runner', { by: event.by })
      default:
        return event satisfies never
    }
  }
}
