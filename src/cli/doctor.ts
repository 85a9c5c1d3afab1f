import { Command } from 'commander'
import type { Act, Cli } from './cli.ts'
import { exitCodeOf } from './exit-code.ts'
import { examine, type Finding } from './examine.ts'
import { printable } from './printable.ts'
import { withStoreFlags, type TargetFlags } from './target.ts'
import { withTargetFlags } from './target-flags.ts'

export function doctorVerb(): Command {
  return withStoreFlags(new Command('doctor'))
    .summary('what is wrong with this set-up, and the command that fixes it')
    .description('Looks at Node, the worker file, the store, the disk, the clock, the secrets and every sync, and says what is wrong and which command fixes it. Writes nothing.')
}

export const doctor: Act<[TargetFlags]> = async (cli, flags) => {
  const findings = await examine(cli, flags)
  const failed = findings.filter(({ verdict }) => verdict === 'fail')
  if (cli.terminal.json) cli.terminal.document({ ok: failed.length === 0, checks: findings })
  else show(cli, findings)
  return failed.length === 0 ? undefined : exitCodeOf('STORE_UNAVAILABLE')
}

function show({ terminal, targetFlags }: Cli, findings: readonly Finding[]): void {
  const { colors } = terminal
  const mark = { ok: colors.green('✓'), warn: colors.yellow('!'), fail: colors.red('✗') }
  for (const { check, verdict, message, fix } of findings) {
    terminal.print(`${mark[verdict]} ${colors.bold(check)}  ${printable(message)}`, ...(fix === null ? [] : [`    → ${printable(withTargetFlags(fix, targetFlags))}`]))
  }
}
