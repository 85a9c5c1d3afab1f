import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { Command, Option } from 'commander'
import { SyncError, type Store } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import type { RunnerEvent } from '../../runner/runner-options.ts'
import { createApiKey } from '../../server/api-key.ts'
import { addApiKey } from '../../server/cursor-ciphers.ts'
import { generateSecret, serializeSecrets } from '../../webhooks/secrets.ts'
import { required } from '../../values/required.ts'
import { actorName } from '../kit/actor.ts'
import { parseCount, parseCountOrZero } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { DemoDestination } from '../kit/demo-destination.ts'
import { DemoReceiver } from '../kit/demo-receiver.ts'
import type { DemoVendors } from '../kit/demo-vendors.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { importSimulators } from '../kit/import-simulators.ts'
import { createDisplay } from '../kit/progress.ts'
import { readTemplate } from '../kit/project-files.ts'
import { DEFAULT_PORT } from '../../embed/serve-api.ts'
import { locateStore } from '../../stores/drivers.ts'
import { confinedSelectOf } from '../../stores/run-select.ts'
import { openService } from '../../embed/service.ts'
import { waitForAbort } from '../kit/wait-for-abort.ts'
import { createEventPrinter } from './start.ts'
import { openTargetStore, loadWorkerTarget, type WorkerTarget } from '../kit/target.ts'

interface DemoFlags {
  readonly port?: number
  readonly seconds?: number
  readonly keep?: string
  readonly destination?: 'duckdb'
}

export function demoVerb(): Command {
  return new Command('demo')
    .summary('run a complete demo on this machine')
    .description(
      'Starts simulated Stripe, HubSpot and GitHub accounts with live edits and injected faults, a worker that syncs them, the feed, a webhook receiver and the console. Needs no account, network or settings, and deletes everything when it ends.',
    )
    .addOption(
      new Option('--port <n>', `port of the API; 0 for any (default: ${DEFAULT_PORT}, or any if taken)`).argParser(
        parseCountOrZero,
      ),
    )
    .addOption(new Option('--seconds <n>', 'exit after N seconds (default: on Ctrl-C)').argParser(parseCount))
    .option('--keep <dir>', 'create the worker and its store in a folder, and keep it')
    .addOption(new Option('--destination <name>', 'also copy the data to a database file').choices(['duckdb']))
    .option('--json', 'print JSON')
}

/** The pause between two cycles of a sync: short, so that changes are visible. */
const CYCLE_PAUSE_MS = 2_000
/** Compaction keeps the store of a demo that runs for days from growing. */
const KEEP_LOG_MS = 15 * 60_000
const GRACE_MS = 3_000
/** Requests per minute; high enough that interactive use never reaches it. */
const RATE_LIMIT_PER_MINUTE = 60_000

export const demo: VerbAction<[DemoFlags]> = async (cli, flags) => {
  const ending = new AbortController()
  const stopping = ending.signal
  cli
    .listenForStop('Stopping and deleting the simulated accounts and their data.')
    .addEventListener('abort', () => ending.abort(), { once: true })
  const folder = makeFolder(cli, flags.keep)
  /** Cleanup steps, run in reverse order even after a failure. */
  const undo: Array<() => unknown> =
    flags.keep === undefined ? [() => rmSync(folder, { recursive: true, force: true })] : []
  try {
    const copy = flags.destination === undefined ? null : await DemoDestination.open(folder)
    // Imported here so that other commands start without the simulators.
    const { DemoVendors: Vendors } = await importSimulators(() => import('../kit/demo-vendors.ts'))
    const vendors = await Vendors.open()
    undo.push(() => vendors.close())
    const target = await makeWorker(cli, folder, vendors, copy)
    const store = await openTargetStore(target)
    undo.push(() => store.close())
    const secret = generateSecret()
    const receiver = await DemoReceiver.open(secret)
    undo.push(() => receiver.close())
    const key = await addKey(store)

    const backfills = new BackfillTracker(target)
    const show = cli.terminal.json ? createEventPrinter(cli) : createEventDisplay(cli, target, undo)
    const service = await openService({
      workers: [target.worker],
      store,
      sourceRuntime: await createRuntime(cli, target),
      concurrency: 6,
      pauseMs: CYCLE_PAUSE_MS,
      keepLogMs: KEEP_LOG_MS,
      api: {
        address: { host: '127.0.0.1', port: flags.port },
        select: confinedSelectOf(locateStore(target.settings.storeUrl, target.settings.folder)),
      },
      onEvent: (event) => {
        backfills.onEvent(event)
        show(event)
      },
    })
    undo.push(() => service.stop(GRACE_MS))
    await backfills.triggerAll(store)
    await service.start()
    await Promise.race([backfills.done, waitForAbort(stopping)])
    await addWebhook(store, receiver.url, secret)
    const url = required(service.api?.url, 'the address of the demo')
    if (copy !== null) await showCopy(cli, copy, store, stopping)
    if (!stopping.aborted) await showReady(cli, { url, key, target, store, receiver: receiver.url, copy })
    vendors.startActivity()
    if (flags.seconds !== undefined) setTimeout(() => ending.abort(), flags.seconds * 1_000).unref()
    await waitForAbort(stopping)
    const copied = (await copy?.countChanges(store)) ?? null
    undo.unshift(() =>
      showEnd(cli, {
        writes: vendors.writes,
        requests: vendors.requests,
        received: receiver.verified,
        forged: receiver.refused,
        kept: flags.keep === undefined ? null : folder,
        ...(copied !== null && { copied }),
      }),
    )
  } finally {
    for (const step of undo.toReversed()) await step()
  }
}

function makeFolder(cli: Cli, keep: string | undefined): string {
  if (keep === undefined) {
    removeStaleFolders()
    return realpathSync(mkdtempSync(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`)))
  }
  const folder = resolve(cli.folder, keep)
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new SyncError('ARGUMENT_INVALID', `${folder} is not empty. Choose another folder for --keep.`)
  mkdirSync(folder, { recursive: true })
  return folder
}

const FOLDER_PREFIX = 'tidemark-demo-'

/** Deletes the folders of demos that were killed before they could clean up. */
function removeStaleFolders(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1]
    if (pid !== undefined && !isProcessRunning(Number(pid)))
      rmSync(join(tmpdir(), name), { recursive: true, force: true })
  }
}

function isProcessRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** The demo ignores the environment: it uses its own store and its own encryption key. */
async function makeWorker(
  cli: Cli,
  folder: string,
  vendors: DemoVendors,
  copy: DemoDestination | null,
): Promise<WorkerTarget> {
  for (const { path, text } of readTemplate(['demo'], vendors.urls))
    writeFileSync(join(folder, path), path === 'worker.ts' && copy !== null ? copy.addTo(text) : text)
  // The injected faults are part of the demo, so warnings about them are not logged.
  const { TIDEMARK_LOG = 'error' } = cli.environment
  return loadWorkerTarget({ ...cli, environment: { TIDEMARK_LOG } }, { file: join(folder, 'worker.ts') })
}

async function addKey(store: Store): Promise<string> {
  const { text, key } = createApiKey({
    name: 'demo',
    scopes: ['*:read'],
    rateLimit: RATE_LIMIT_PER_MINUTE,
    createdAt: systemClock.now(),
  })
  await addApiKey(store, key, actorName())
  return text
}

async function addWebhook(store: Store, url: string, secret: string): Promise<void> {
  await store.putWebhook(
    {
      id: 'wh_demo',
      url,
      databases: null,
      actions: null,
      allow: ['http', 'private', 'port'],
      secrets: serializeSecrets([{ secret, endsAt: null }]),
      createdAt: systemClock.now(),
    },
    { sequence: await store.headSequence(), floor: 0 },
    actorName(),
  )
}

/** Triggers the backfill of every sync once, and resolves `done` when all have finished. */
class BackfillTracker {
  readonly done: Promise<void>
  readonly #worker: string
  readonly #remaining: Set<string>
  #finish: () => void = () => {}

  constructor({ name, worker }: WorkerTarget) {
    this.#worker = name
    this.#remaining = new Set(worker.manifest.syncs.filter(({ pair }) => pair !== 'delta').map((sync) => sync.name))
    this.done = new Promise((resolve) => (this.#finish = resolve))
  }

  async triggerAll(store: Store): Promise<void> {
    for (const sync of this.#remaining)
      await store.signalSync({ worker: this.#worker, sync }, { kind: 'trigger', actor: 'demo', at: systemClock.now() })
  }

  onEvent(event: RunnerEvent): void {
    if (
      event.kind === 'ended' &&
      event.result.error === null &&
      this.#remaining.delete(event.sync) &&
      this.#remaining.size === 0
    )
      this.#finish()
  }
}

/** Shows the same lines as `run`, until the demo ends. */
function createEventDisplay(
  cli: Cli,
  { worker }: WorkerTarget,
  undo: Array<() => unknown>,
): (event: RunnerEvent) => void {
  const display = createDisplay(
    cli,
    worker.manifest.syncs.map(({ name }) => name),
    { reveal: false, continuous: true },
  )
  undo.push(() => display.close())
  return (event) => {
    if (event.kind === 'started') display.showProgress(event.sync, { ...event, kind: 'begun' })
    else if (event.kind === 'landed' || event.kind === 'waiting') display.showProgress(event.sync, event)
    else if (event.kind === 'ended') display.showResult(event.result)
  }
}

/** Shows the copy arriving, and waits for it. */
async function showCopy({ terminal }: Cli, copy: DemoDestination, store: Store, stopping: AbortSignal): Promise<void> {
  if (!terminal.json) terminal.print(`Copying to ${copy.name} …`)
  const databases = await copy.waitUntilCopied(store, stopping)
  if (databases === null) return
  const changes = databases.reduce((sum, one) => sum + one.changes, 0)
  if (terminal.json)
    return terminal.printDocument({ event: 'copied', destination: 'duckdb', file: copy.file, changes, databases })
  terminal.print(`${formatNumber(changes)} changes of ${databases.length} databases copied to ${copy.name}.`, '')
}

interface DemoAddresses {
  readonly url: string
  readonly key: string
  readonly target: WorkerTarget
  readonly store: Store
  readonly receiver: string
  readonly copy: DemoDestination | null
}

async function showReady(
  { terminal, folder }: Cli,
  { url, key, target, store, receiver, copy }: DemoAddresses,
): Promise<void> {
  const databases = await store.databases()
  const [row] = await store.rows({ database: 'customers', limit: 1 })
  const file = `--file ${shorterPath(folder, join(target.settings.folder, 'worker.ts'))}`
  const commands = {
    console: `${url}/console/`,
    feed: `curl -N -H 'accept: text/event-stream' -H 'authorization: Bearer ${key}' ${url}/agents/v1/changes`,
    query: `npx tidemark query "select name, email from customers order by _synced_at desc limit 5" ${file}`,
    why: `npx tidemark why customers ${row?.key ?? '<key>'} ${file}`,
    ...(copy !== null && {
      duckdb: `duckdb -readonly ${shorterPath(folder, copy.file)} "select name, email from customers order by _committed_at desc limit 5"`,
    }),
  }
  if (terminal.json) {
    terminal.printDocument({
      event: 'ready',
      url,
      key,
      folder: target.settings.folder,
      store: target.storeLabel,
      receiver,
      rows: Object.fromEntries(databases.map(({ name, rows }) => [name, rows])),
      try: commands,
    })
    return
  }
  const { bold, dim } = terminal.colors
  terminal.print(
    `${bold('Three simulated accounts, synced continuously.')} ${databases.map(({ name, rows }) => `${formatNumber(rows)} ${name}`).join(', ')}.`,
    dim(
      'They receive three edits per second, and sometimes respond with 429 or 503, or slowly. Ctrl-C stops the demo and deletes its data.',
    ),
    '',
    bold('1  Open the console'),
    `   ${commands.console}`,
    bold('2  Follow every change'),
    `   ${commands.feed}`,
    bold('3  Query the rows'),
    `   ${commands.query}`,
    bold('4  Show the history of a row'),
    `   ${commands.why}`,
    ...(commands.duckdb === undefined
      ? []
      : [bold('5  Query the copy in DuckDB, also while it is updated'), `   ${commands.duckdb}`]),
    '',
  )
}

interface DemoTotals {
  readonly writes: number
  readonly requests: number
  readonly received: number
  readonly forged: number
  readonly kept: string | null
  readonly copied?: number
}

function showEnd({ terminal }: Cli, end: DemoTotals): void {
  if (terminal.json) return terminal.printDocument({ event: 'end', ...end })
  terminal.print(
    `${formatNumber(end.writes)} writes in the accounts, ${formatNumber(end.requests)} requests to them, ${formatNumber(end.received)} webhooks received and verified.`,
    ...(end.copied === undefined ? [] : [`${formatNumber(end.copied)} changes copied to DuckDB.`]),
    end.kept === null
      ? 'All data of the demo is deleted.'
      : `The worker and its store are in ${end.kept}; the simulated accounts are gone.`,
  )
}

function shorterPath(folder: string, file: string): string {
  const path = relative(folder, file)
  return path.startsWith('..') ? file : path
}
