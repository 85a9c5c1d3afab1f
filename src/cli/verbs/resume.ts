import { Command } from 'commander'
import type { VerbAction } from '../cli.ts'
import { sendSignal } from '../kit/send-signal.ts'
import { withStoreFlags, type TargetFlags } from '../kit/target.ts'

export function resumeVerb(): Command {
  return withStoreFlags(new Command('resume'))
    .summary('let a paused sync go on')
    .description('Lets a paused sync go on where it stopped. Also forgives earlier failures, so that the next try need not wait.')
    .argument('<sync>', 'the sync')
}

export const resume: VerbAction<[string, TargetFlags]> = (cli, name, flags) => sendSignal(cli, name, flags, 'resume')
