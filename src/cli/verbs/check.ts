import { Command, Option } from 'commander'
import { resolve } from 'node:path'
import type { Finding, WorkerCheck } from '../../linter/index.ts'
import { parseCount } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { EXIT_OK, exitCodeOf } from '../kit/exit-code.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { toPrintable } from '../kit/printable.ts'
import { openTargetPauses } from '../kit/target-pauses.ts'
import { loadWorkerTarget } from '../kit/target.ts'

interface CheckFlags {
  readonly pages: number
}

export function checkVerb(): Command {
  return new Command('check')
    .summary('test a worker against its source for common faults')
    .description(
      'Reads one cycle of each sync and the start of a second one from the real source, and reports common faults: paging that never ends, a state that does not advance, ties at a page boundary, no lag, missed deletions and more. Writes nothing. A comment `tidemark-ignore <sync>: <finding>` in the worker suppresses a finding.',
    )
    .argument('<worker>', 'the worker file')
    .argument('[sync...]', 'the syncs to check (default: all)')
    .addOption(new Option('--pages <n>', 'read at most this many pages per cycle').argParser(parseCount).default(20))
    .option('--json', 'print JSON')
}

export const check: VerbAction<[string, string[], CheckFlags]> = async (cli, file, syncs, flags) => {
  // Imported here because no other command needs it.
  const { checkWorker } = await import('../../linter/index.ts')
  const signal = cli.listenForStop()
  const target = await loadWorkerTarget(cli, { file })
  const pauses = openTargetPauses(target)
  const result = await checkWorker(target.worker, {
    ...(await createRuntime(cli, target)),
    pauses,
    pagesMax: flags.pages,
    workerFile: resolve(cli.folder, target.file),
    syncs,
    signal,
    onProgress: (sync) => {
      if (cli.terminal.isInteractive) cli.terminal.draw([`▸ ${sync}`])
    },
  }).finally(() => pauses.close())
  if (cli.terminal.isInteractive) cli.terminal.draw([])
  const all = [...result.findings, ...result.syncs.flatMap(({ findings }) => findings)]
  const ok = !all.some(({ severity }) => severity === 'error')
  if (cli.terminal.json)
    cli.terminal.printDocument({ worker: target.name, file: target.file, pagesMax: flags.pages, ok, ...result })
  else printCheck(cli, result, all, flags.pages)
  if (signal.aborted) return exitCodeOf('CANCELLED')
  return ok ? EXIT_OK : exitCodeOf('CONNECTOR_FAILED')
}

function printCheck({ terminal }: Cli, result: WorkerCheck, all: readonly Finding[], pagesMax: number): void {
  const { colors } = terminal
  const paint = { error: colors.red, warning: colors.yellow, note: colors.dim } as const
  const print = ({ finding, severity, seen, todo }: Finding): void =>
    terminal.print(
      `  ${paint[severity](severity)} ${colors.bold(finding)}  ${toPrintable(seen)}`,
      `      → ${toPrintable(todo)}`,
    )
  for (const finding of result.findings) print(finding)
  for (const { sync, mode, pages, requests, changes, findings, ignored } of result.syncs) {
    const isBad = findings.some(({ severity }) => severity === 'error')
    terminal.print(
      `${isBad ? colors.red('✗') : colors.green('✓')} ${colors.bold(sync)}  ${mode} · ${changes} changes in ${pages} pages, ${requests} requests${ignored.length === 0 ? '' : ` · ignored: ${ignored.map(({ finding }) => finding).join(', ')}`}`,
    )
    for (const finding of findings) print(finding)
  }
  const count = (severity: Finding['severity']): number => all.filter((finding) => finding.severity === severity).length
  terminal.print(`${count('error')} errors, ${count('warning')} warnings, ${count('note')} notes.`)
  terminal.remark(colors.dim(`Read at most ${pagesMax} pages per cycle. Nothing was written.`))
}
