import { Command, Option } from 'commander'
import { SyncError } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import type { SimulationReport } from '../../testing/simulation/simulate.ts'
import type { WorkerReport } from '../../testing/simulation/simulate-worker.ts'
import { parseCount } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { EXIT_OK, exitCodeOf } from '../kit/exit-code.ts'
import { RawJson } from '../kit/json-document.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { importSimulators } from '../kit/import-simulators.ts'
import { toPrintable } from '../kit/printable.ts'
import { loadWorkerTarget } from '../kit/target.ts'

interface SimFlags {
  readonly seeds: number
  readonly firstSeed: number
  readonly seconds?: number
  /** `true` selects all vendors. */
  readonly vendors?: true | string
}

export function simVerb(): Command {
  return new Command('sim')
    .summary('run seeded fault-injection simulations')
    .description(
      'Runs the engine in simulated worlds with faulty sources, lost store responses, crashes, frozen processes and wrong clocks. A world is a pure function of its seed. Reports the violated guarantee, the seed, and the smallest set of faults that reproduces it.',
    )
    .argument('[worker]', 'a worker file: simulate its syncs instead of the engine')
    .addOption(new Option('--seeds <n>', 'number of worlds, or of runs per sync').argParser(parseCount).default(1_000))
    .addOption(new Option('--first-seed <n>', 'the first seed').argParser(parseCount).default(1))
    .option('--vendors [names]', 'simulate vendor sources: all, or a comma-separated list')
    .option('--seconds <n>', 'stop after N seconds', parseCount)
    .option('--json', 'print JSON')
}

export const sim: VerbAction<[string | undefined, SimFlags]> = async (cli, file, flags) => {
  if (file !== undefined && flags.vendors !== undefined)
    throw new SyncError('ARGUMENT_INVALID', '--vendors brings its own workers. Leave out the worker file.')
  return file === undefined ? simWorlds(cli, flags) : simWorker(cli, file, flags)
}

async function simWorlds(cli: Cli, flags: SimFlags): Promise<number> {
  // Imported here because no other command needs the simulation.
  const simulate =
    flags.vendors === undefined
      ? (await import('../../testing/simulation/simulate.ts')).simulate
      : (await importSimulators(() => import('../../testing/simulation/vendors/simulate-vendors.ts'))).simulateVendors
  const vendors = typeof flags.vendors === 'string' ? await parseVendors(flags.vendors) : undefined
  const report = await simulate({
    ...(vendors && { vendors }),
    seeds: flags.seeds,
    firstSeed: flags.firstSeed,
    ...(flags.seconds === undefined ? {} : { seconds: flags.seconds }),
    onProgress: ({ done, of, faults }) => {
      if (cli.terminal.isInteractive && done % 20 === 0)
        cli.terminal.draw([`▸ ${formatNumber(done)} of ${formatNumber(of)} worlds · ${formatNumber(faults)} faults`])
    },
  })
  if (cli.terminal.isInteractive) cli.terminal.draw([])
  if (cli.terminal.json)
    cli.terminal.printDocument({
      ...report,
      worldsByKind: new RawJson(report.worldsByKind),
      faultsByPlace: new RawJson(report.faultsByPlace),
    })
  else
    printReport(
      cli,
      report,
      flags.vendors === undefined
        ? ''
        : typeof flags.vendors === 'string'
          ? ` --vendors ${flags.vendors}`
          : ' --vendors',
    )
  return report.failures.length === 0 ? EXIT_OK : exitCodeOf('INTERNAL')
}

async function parseVendors(text: string): Promise<string[]> {
  const { OPT_IN_STREAMS, VENDOR_STREAMS } = await import('../../testing/simulation/vendors/vendor-streams.ts')
  const known = [...new Set([...VENDOR_STREAMS, ...OPT_IN_STREAMS].map(({ vendor }) => vendor))]
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new SyncError('ARGUMENT_INVALID', `Unknown vendor "${unknown}". The vendors are ${known.join(', ')}.`)
  return names
}

async function simWorker(cli: Cli, file: string, flags: SimFlags): Promise<number> {
  const { simulateWorker } = await import('../../testing/simulation/simulate-worker.ts')
  const target = await loadWorkerTarget(cli, { file })
  const { fetch, secrets } = await createRuntime(cli, target)
  const startedAt = systemClock.now()
  const report = await simulateWorker(target.worker.plans(), {
    seeds: flags.seeds,
    firstSeed: flags.firstSeed,
    fetch,
    secrets,
    onProgress: ({ sync, done, of }) => {
      if (cli.terminal.isInteractive && done % 20 === 0)
        cli.terminal.draw([`▸ ${sync}  ${formatNumber(done)} of ${formatNumber(of)} runs`])
    },
  })
  if (cli.terminal.isInteractive) cli.terminal.draw([])
  if (cli.terminal.json) cli.terminal.printDocument({ worker: target.name, file: target.file, ...report })
  else printWorkerReport(cli, report, file, systemClock.now() - startedAt)
  return report.syncs.every(({ failure }) => failure === null) ? EXIT_OK : exitCodeOf('CONNECTOR_FAILED')
}

function printWorkerReport({ terminal }: Cli, report: WorkerReport, file: string, ms: number): void {
  const { colors } = terminal
  for (const { sync, rows, pages, seeds, faults, failure } of report.syncs) {
    const injected = Object.values(faults).reduce((sum, count) => sum + count, 0)
    terminal.print(
      `${failure === null ? colors.green('✓') : colors.red('✗')} ${sync}  ${formatNumber(rows)} rows in ${formatNumber(pages)} pages · ${formatNumber(seeds)} runs · ${formatNumber(injected)} faults`,
    )
    if (failure === null) continue
    terminal.print(`  seed ${failure.seed}: ${colors.bold(failure.problem)}  ${toPrintable(failure.message)}`)
    terminal.print(
      `  Smallest set of faults: ${failure.faults.length === 0 ? 'none' : failure.faults.map((fault) => toPrintable(fault)).join(', ')}.`,
    )
    if (failure.seed > 0) terminal.print(`  Reproduce: npx tidemark sim ${file} --first-seed ${failure.seed} --seeds 1`)
  }
  const runs = report.syncs.reduce((sum, { seeds }) => sum + seeds, 0)
  terminal.print(`${report.sentence} ${formatNumber(Math.round(runs / Math.max(0.001, ms / 1000)))} runs per second.`)
}

function printReport({ terminal }: Cli, report: SimulationReport, flags: string): void {
  const { colors } = terminal
  terminal.print(
    `${formatNumber(report.seeds)} worlds from seed ${report.firstSeed} · ${formatNumber(Math.round(report.perSecond))} per second · ${formatNumber(report.faults)} faults injected · ${formatNumber(report.cycles)} cycles · ${formatNumber(Math.round(report.virtualHours))} virtual hours`,
    ...Object.entries(report.worldsByKind)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([kind, worlds]) => `  ${formatNumber(worlds)} × ${kind}`),
    ...Object.entries(report.faultsByPlace).map(
      ([kind, places]) => `  ${kind}  ${formatNumber(Object.values(places).reduce((sum, count) => sum + count, 0))}`,
    ),
  )
  for (const { seed, oracle, message, faults, trail } of report.failures) {
    terminal.print(
      `${colors.red('✗')} seed ${seed}: ${colors.bold(oracle)}  ${toPrintable(message)}`,
      `  Smallest set of faults: ${faults.length === 0 ? 'none' : faults.join(', ')}`,
      ...trail.map((step) => `    ${toPrintable(step)}`),
      `  Reproduce: npx tidemark sim${flags} --first-seed ${seed} --seeds 1`,
    )
  }
  terminal.print(`${report.sentence} Digest ${report.digest}.`)
  if (report.failures.length === 0 && report.kindsNeverHit.length > 0)
    terminal.remark(colors.dim(`Faults never injected in this run: ${report.kindsNeverHit.join(', ')}`))
}
