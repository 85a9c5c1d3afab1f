import { Command } from 'commander'
import type { VerbAction } from '../cli.ts'
import { sendSignal } from '../kit/send-signal.ts'
import { withStoreFlags, type TargetFlags } from '../kit/target.ts'

export function pauseVerb(): Command {
  return withStoreFlags(new Command('pause'))
    .summary('pause a sync')
    .description(
      'Pauses a sync. A running cycle ends after the current page, and no cycle starts until the sync is resumed. The state is kept.',
    )
    .argument('<sync>', 'the sync')
}

export const pause: VerbAction<[string, TargetFlags]> = (cli, name, flags) => sendSignal(cli, name, flags, 'pause')
