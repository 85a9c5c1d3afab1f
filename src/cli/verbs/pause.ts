import { Command } from 'commander'
import type { VerbAction } from '../cli.ts'
import { sendSignal } from '../kit/send-signal.ts'
import { withStoreFlags, type TargetFlags } from '../kit/target.ts'

export function pauseVerb(): Command {
  return withStoreFlags(new Command('pause'))
    .summary('let no further page be read')
    .description('Pauses a sync: a running cycle ends after its page in hand, and no other begins until somebody resumes it. Its state stays.')
    .argument('<sync>', 'the sync')
}

export const pause: VerbAction<[string, TargetFlags]> = (cli, name, flags) => sendSignal(cli, name, flags, 'pause')
