import { Command } from 'commander'
import type { VerbAction, Cli } from '../cli.ts'
import { exitCodeOf } from '../kit/exit-code.ts'
import { runDoctorChecks, type DoctorFinding } from '../kit/doctor-checks.ts'
import { toPrintable } from '../kit/printable.ts'
import { withStoreFlags, type TargetFlags } from '../kit/target.ts'
import { addTargetFlags } from '../kit/target-flags.ts'

export function doctorVerb(): Command {
  return withStoreFlags(new Command('doctor'))
    .summary('diagnose this installation and suggest fixes')
    .description(
      'Checks Node, the worker file, the store, the disk, the clock, the secrets and every sync, and prints a fix for each problem. Writes nothing.',
    )
}

export const doctor: VerbAction<[TargetFlags]> = async (cli, flags) => {
  const findings = await runDoctorChecks(cli, flags)
  const failed = findings.filter(({ verdict }) => verdict === 'fail')
  if (cli.terminal.json) cli.terminal.printDocument({ ok: failed.length === 0, checks: findings })
  else printFindings(cli, findings)
  return failed.length === 0 ? undefined : exitCodeOf('STORE_UNAVAILABLE')
}

function printFindings({ terminal, targetFlags }: Cli, findings: readonly DoctorFinding[]): void {
  const { colors } = terminal
  const mark = { ok: colors.green('✓'), warn: colors.yellow('!'), fail: colors.red('✗') }
  for (const { check, verdict, message, fix } of findings) {
    terminal.print(
      `${mark[verdict]} ${colors.bold(check)}  ${toPrintable(message)}`,
      ...(fix === null ? [] : [`    → ${toPrintable(addTargetFlags(fix, targetFlags))}`]),
    )
  }
}
