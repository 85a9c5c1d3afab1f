import { dirname, relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { loadWorker } from '../../worker/load-worker.ts'
import { openStore } from '../../stores/open-store.ts'
import { resolveSettings, type Settings } from '../../config/settings.ts'
import type { NotRunDeclaration, WorkerLike } from '../../worker/worker.ts'
import type { Log, LogFields, Store } from '../../contract/index.ts'
import { createLog, type LogLevel } from '../../platform/log.ts'
import { locateStore } from '../../stores/drivers.ts'
import type { Cli } from '../cli.ts'
import { formatNumber } from './counts.ts'
import { toPrintable } from './printable.ts'

/** The flags that say which worker, which store and which tenant are meant. */
export interface TargetFlags {
  readonly file?: string
  readonly store?: string
  readonly tenant?: string
}

/** What a command is about. */
export interface Target {
  readonly settings: Settings
  /** Shown: relative where that is shorter, and without a password. */
  readonly storeLabel: string
  readonly tenant: string
  readonly onMigration: (progress: { readonly moved: number; readonly total: number }) => void
}

export interface WorkerTarget extends Target {
  readonly worker: WorkerLike
  /** What the registry calls it. */
  readonly name: string
  readonly file: string
}

export function withStoreFlags(command: Command): Command {
  return command
    .option('--file <file>', 'the worker file (default: ./worker.ts, or .mts, .js, .mjs, or tidemark.yaml)')
    .option('--store <url>', 'where the rows live: sqlite:file.db or postgres://… (default: $TIDEMARK_STORE, or sqlite:.tidemark/tidemark.db)')
    .option('--tenant <name>', 'whose data it is (default: $TIDEMARK_TENANT, or default)')
    .option('--json', 'answer in JSON, for programs')
}

/** For a command that needs no worker: only where its store would be. */
export function resolveStoreTarget(cli: Cli, flags: TargetFlags): Target {
  const folder = flags.file === undefined ? cli.folder : dirname(resolve(cli.folder, flags.file))
  return resolveTarget(cli, flags, folder)
}

export async function loadWorkerTarget(cli: Cli, flags: TargetFlags): Promise<WorkerTarget> {
  const { worker, file } = await loadWorker(flags.file, { folder: cli.folder })
  return { ...resolveTarget(cli, flags, dirname(file)), worker, name: worker.name ?? 'worker', file: relative(cli.folder, file) || file }
}

/** One line, so that nobody resets the wrong worker by being in the wrong folder. */
export function printTarget({ terminal }: Cli, target: Target | WorkerTarget): void {
  const worker = 'name' in target ? `${target.name} (${target.file}) · ` : ''
  terminal.remark(terminal.colors.dim(`${worker}${target.storeLabel} · tenant ${target.tenant}`))
  const notRun = describeNotRun(target)
  if (notRun !== null) terminal.remark(terminal.colors.dim(`Not run here: ${notRun}`))
}

/** What the worker file declares and only another runtime would run, as a list; null when there is nothing. */
export function describeNotRun(target: Target | WorkerTarget): string | null {
  const notRun = listNotRun(target).map(({ kind, name, note }) => `${kind} ${name}${note === null ? '' : ` (${note})`}`)
  return notRun.length === 0 ? null : toPrintable(notRun.join(', '))
}

function listNotRun(target: Target | WorkerTarget): readonly NotRunDeclaration[] {
  return 'worker' in target ? (target.worker.manifest.notRun ?? []) : []
}

/** The same for programs. */
export function targetDocument(target: Target | WorkerTarget): object {
  const notRun = listNotRun(target)
  return {
    ...('name' in target ? { worker: target.name, file: target.file } : {}), store: target.storeLabel, tenant: target.tenant,
    ...(notRun.length > 0 ? { notRun } : {}),
  }
}

/** The caller closes it. */
export function openTargetStore({ settings, tenant, onMigration }: Target): Promise<Store> {
  return openStore(settings.storeUrl, { tenant, folder: settings.folder, environment: settings.environment, onMigration })
}

/** A line per tenth. */
function createMigrationReporter({ terminal }: Cli): Target['onMigration'] {
  let shown = -1
  return ({ moved, total }) => {
    const tenth = Math.floor((moved / total) * 10)
    if (tenth === shown) return
    shown = tenth
    terminal.remark(`Moving the store to typed tables: ${formatNumber(moved)} of ${formatNumber(total)} changes. It can be interrupted, and goes on when the store is opened again.`)
  }
}

export function createTerminalLog({ terminal }: Cli, level: LogLevel, context?: () => LogFields): Log {
  return createLog({ level, write: (line) => terminal.log(line), ...(context !== undefined && { context }) })
}

function resolveTarget(cli: Cli, flags: TargetFlags, folder: string): Target {
  const settings = resolveSettings({ flags, environment: cli.environment, folder })
  const store = locateStore(settings.storeUrl, folder).describe(cli.folder)
  return { settings, storeLabel: store, tenant: settings.tenant, onMigration: createMigrationReporter(cli) }
}
