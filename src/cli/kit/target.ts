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

/** The flags that select the worker, the store and the tenant. */
export interface TargetFlags {
  readonly file?: string
  readonly store?: string
  readonly tenant?: string
}

/** The store and tenant that a command works on. */
export interface Target {
  readonly settings: Settings
  /** The store URL for display: relative if shorter, and without a password. */
  readonly storeLabel: string
  readonly tenant: string
  readonly onMigration: (progress: { readonly moved: number; readonly total: number }) => void
}

export interface WorkerTarget extends Target {
  readonly worker: WorkerLike
  /** The name of the worker in the registry. */
  readonly name: string
  readonly file: string
}

export function withStoreFlags(command: Command): Command {
  return command
    .option('--file <file>', 'the worker file (default: worker.ts or tidemark.yaml)')
    .option(
      '--store <url>',
      'the store: sqlite:file.db or postgres://… (default: $TIDEMARK_STORE, or sqlite:.tidemark/tidemark.db)',
    )
    .option('--tenant <name>', 'the tenant (default: $TIDEMARK_TENANT, or default)')
    .option('--json', 'print JSON')
}

/** Resolves the target of a command that needs no worker file. */
export function resolveStoreTarget(cli: Cli, flags: TargetFlags): Target {
  const folder = flags.file === undefined ? cli.folder : dirname(resolve(cli.folder, flags.file))
  return resolveTarget(cli, flags, folder)
}

export async function loadWorkerTarget(cli: Cli, flags: TargetFlags): Promise<WorkerTarget> {
  const { worker, file } = await loadWorker(flags.file, { folder: cli.folder })
  return {
    ...resolveTarget(cli, flags, dirname(file)),
    worker,
    name: worker.name ?? 'worker',
    file: relative(cli.folder, file) || file,
  }
}

/** Prints the target, to guard against commands run in the wrong folder. */
export function printTarget({ terminal }: Cli, target: Target | WorkerTarget): void {
  const worker = 'name' in target ? `${target.name} (${target.file}) · ` : ''
  terminal.remark(terminal.colors.dim(`${worker}${target.storeLabel} · tenant ${target.tenant}`))
  const notRun = describeNotRun(target)
  if (notRun !== null) terminal.remark(terminal.colors.dim(`Not run here: ${notRun}`))
}

/** Lists declarations of the worker file that only another runtime runs; null if there are none. */
export function describeNotRun(target: Target | WorkerTarget): string | null {
  const notRun = listNotRun(target).map(({ kind, name, note }) => `${kind} ${name}${note === null ? '' : ` (${note})`}`)
  return notRun.length === 0 ? null : toPrintable(notRun.join(', '))
}

function listNotRun(target: Target | WorkerTarget): readonly NotRunDeclaration[] {
  return 'worker' in target ? (target.worker.manifest.notRun ?? []) : []
}

/** The target as part of a JSON document. */
export function targetDocument(target: Target | WorkerTarget): object {
  const notRun = listNotRun(target)
  return {
    ...('name' in target ? { worker: target.name, file: target.file } : {}),
    store: target.storeLabel,
    tenant: target.tenant,
    ...(notRun.length > 0 ? { notRun } : {}),
  }
}

/** The caller must close the store. */
export function openTargetStore({ settings, tenant, onMigration }: Target): Promise<Store> {
  return openStore(settings.storeUrl, {
    tenant,
    folder: settings.folder,
    environment: settings.environment,
    onMigration,
  })
}

/** Prints one line per 10 % of progress. */
function createMigrationReporter({ terminal }: Cli): Target['onMigration'] {
  let shown = -1
  return ({ moved, total }) => {
    const tenth = Math.floor((moved / total) * 10)
    if (tenth === shown) return
    shown = tenth
    terminal.remark(
      `Migrating the store to typed tables: ${formatNumber(moved)} of ${formatNumber(total)} changes. If interrupted, it continues when the store is opened again.`,
    )
  }
}

export function createTerminalLog({ terminal }: Cli, level: LogLevel, context?: () => LogFields): Log {
  return createLog({ level, write: (line) => terminal.log(line), ...(context !== undefined && { context }) })
}

function resolveTarget(cli: Cli, flags: TargetFlags, folder: string): Target {
  const settings = resolveSettings({ flags, environment: cli.environment, folder })
  const storeLabel = locateStore(settings.storeUrl, folder).describe(cli.folder)
  return { settings, storeLabel, tenant: settings.tenant, onMigration: createMigrationReporter(cli) }
}
